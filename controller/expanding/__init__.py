"""`stowplan expand`: the objects made for a Model, without a cluster."""
