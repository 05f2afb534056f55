"""The external metrics API, `external.metrics.k8s.io/v1beta1`, from which HPAs read decisions.

series          the metrics, with known and unknown values
from_status     metrics of a variant from the status of its VariantAutoscaling, or why there are none
from_binding    metrics of bound targets from the status of their AutoscalingPolicyBinding
provider        an index of all metrics, and the result of a query: exact, or an error
selector        label selectors
quantity        formatting of numbers as quantities
authentication  authentication of callers: only the front proxy of the cluster
routes          paths; `discovery`: documents about them
watched         watches that keep the metrics and the front proxy up to date
status          errors as `metav1.Status`
app, run        the application, and the process `stowplan apiserver`; `config`: its configuration
"""
