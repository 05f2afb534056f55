"""`stowplan expand`: the objects made for a Model, without a cluster.

- the verb: `run`; ModelRoutes for Gateways: `gateways`
"""
