"""`stowplan explain`: why a variant has the replicas that it has, read from a live cluster.

`evidence` is what the cluster says, `account` makes sense of it without asking anything, `text` shows that.
"""
