"""The external metrics API, `external.metrics.k8s.io/v1beta1`, from which HPA reads what was decided.

from_status     reads the numbers of a variant off its VariantAutoscaling, or why there are none.
provider        an index over all variants, and the answer to one query: exact, or an error.
selector        label selectors.
quantity        how numbers are written.
authentication  who may ask: the front proxy of the cluster, and nobody else.
routes          paths, discovery, errors as `metav1.Status`.
watched         keeps variants and front proxy current from the cluster.
app, run        the application, and the process `stowplan apiserver`.
"""
