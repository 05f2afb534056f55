"""`stowplan explain`: why a variant has its number of replicas, read from a live cluster.

`evidence` reads the cluster, `account` interprets the objects in pure functions, `text` renders the result.

- the verb: `run`; a binding instead of a variant: `binding`
"""
