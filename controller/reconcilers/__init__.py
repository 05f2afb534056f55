"""Reconcilers, one module for each, and next to it the pure functions that make its decisions.

`variantautoscaling` plans all variants together and publishes the statuses that `status` computes, or only
advice where `advisory` selects that. Before it, `leaving` marks the pods to remove; after it, `evicting`
moves replicas in `rounds`, and `closing` keeps new pods off their nodes. `certificates` applies what
`authority` decides, and writes the CA by the patches of `trust`. `autoscalingpolicybinding` decides on all
bindings; for those scaled by the controller itself, `scaling` writes the scales that `scale_orders` computes.
`model` creates the objects of Models, and `traffic` reports how requests reach pods; `workers` runs both on
changed objects, and `status_writer` writes statuses.

- planning cycles: `watching` of engines and their `silence`, `privileges`, `settings_keeping`; `news` and
  `publishing` of statuses; `announcing` of changes, `heartbeat`
- whether decisions are followed: `acting`
- pods of a plan: `following`, `placing`, `divergence`; evictions: `allowing`, `eviction_record`
- bindings: `binding_memory`, `binding_status`, and the exchange with the plan: `joint`
- Models: `child_writer`, `model_adapters`, `gateways`
- the Lease: `lease_annotation`, `former_claim`; clocks: `clock`
"""
