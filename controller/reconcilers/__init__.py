"""One file for each thing that is kept matching, and beside each the pure decisions it carries out.

`variantautoscaling` plans all variants together and writes what `status` made of it, or only tells it where
`advisory` says so. Before it, `leaving` marks the pods that are to go; after it, `evicting` moves replicas in
`rounds` and keeps new pods off their nodes by `closing` them. `certificates` carries out what `authority`
decides. `autoscalingpolicybinding` decides on all bindings; where it is to scale, `scaling` does what
`scale_orders` says. `model` makes what Models become, and `traffic` says how requests find pods; `workers`
let both work on what changed, and `status_writer` writes their statuses.
"""
