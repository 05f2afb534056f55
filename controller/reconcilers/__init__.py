"""One file for each thing that is kept matching, and beside each the pure decisions it carries out.

`variantautoscaling` plans all variants together and writes what `status` made of it, or only tells it where
`advisory` says so; `certificates` carries out what `authority` decides.
"""
