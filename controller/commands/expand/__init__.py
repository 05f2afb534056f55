"""`stowplan expand`: the objects made for a Model, without a cluster.

- the verb: `run`, which also translates ModelRoutes for Gateways
"""
