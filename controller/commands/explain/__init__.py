"""`stowplan explain`: why a variant or binding has its number of replicas, read from a live cluster.

- the verb: `run`; objects of the cluster: `evidence`
- facts, advice and text: `variant`, for VariantAutoscalings and annotated autoscalers, and `binding`
"""
