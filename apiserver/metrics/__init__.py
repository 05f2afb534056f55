"""The external metrics API, `external.metrics.k8s.io/v1beta1`, from which HPAs read decisions.

index           the metrics, their index, and the result of a query: exact, or an error
authentication  authentication of the cluster's front proxy
tokens          reviews of the tokens of other clients
routes          paths, discovery documents and errors
watches         watches that keep the metrics and the front proxy up to date; the metrics of an object
status          errors as `metav1.Status`
run             the process `stowplan apiserver`: its application and its configuration
"""
