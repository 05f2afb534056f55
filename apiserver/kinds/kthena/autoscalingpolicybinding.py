"""AutoscalingPolicyBinding `v1alpha1`: the targets that an AutoscalingPolicy scales, and their bounds.

Decisions where the reference page does not specify the behavior:

- Exactly one of the two configurations is set, as in the releases of this kind.
- A target needs the name of an object. Its kind defaults to ModelInfer, its namespace is always that of the
  binding. `uid`, `resourceVersion` and `fieldPath` of the reference are ignored, with a warning.
- An optimizer needs targets, so `params` is required, and no two of them are the same object.
- A target without `metricEndpoint` uses one with its defaults.
- The endpoint is a plain path on the pods of the target, so that requests can go nowhere else.

Length limits of text, lists and maps are ours.
- The status is ours: the page declares it empty.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import LABELS, LabelValue
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import (
    distinct_targets,
    fully_named,
    own_namespace,
)
from apiserver.kinds.meta import Condition, Int32, LocalObjectReference, ObjectReference, Time
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN, REQUIRED
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.rules import Cel, ExactlyOneOf, LessOrEqual, WebhookOnly

Replicas = Annotated[Int32, Range(0)]
ShortText = Annotated[str, Length(1, 64)]
Number = Annotated[str, Length(1, 32)]
"""A number as text, with about six digits."""


@declaration()
class BoundTarget:
    """A target, with its current and desired replicas."""

    kind: Annotated[str, Length(maximum=63)]
    """The kind of the object."""

    name: Annotated[str, Length(maximum=253)]
    """The name of the object."""

    current_replicas: Maybe[Replicas] = UNSET
    """The number of replicas currently requested by the object."""

    replicas: Maybe[Replicas] = UNSET
    """The desired number of replicas. Unset while the decision is not published or cannot be made."""


@declaration()
class BoundMetric:
    """A metric of the policy, as reported by the pods of the targets."""

    name: Annotated[str, Length(maximum=256)]
    """The name of the metric."""

    target_value: Number
    """The target value for one replica."""

    value: Maybe[Number] = UNSET
    """The sum over the reporting replicas. Unset while it is unknown."""

    replicas: Maybe[Replicas] = UNSET
    """The number of replicas that the metric requires, before any limit."""

    signal: Literal["Fresh", "Quorum", "Held", "Unknown"]
    """The quality of the metric signal."""

    age_seconds: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The age of the oldest report in use, in seconds."""

    silent_pods: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The number of ready pods that do not report the metric."""


@declaration()
class BindingDecision:
    """The last decision on all targets together."""

    message: Annotated[str, Length(maximum=1024)]
    """A human-readable explanation of the decision, in one sentence with numbers."""

    wanted_replicas: Maybe[Replicas] = UNSET
    """The number of replicas that the metrics require, before any limit. Unset while no metric is known."""

    limited_by: Maybe[Annotated[tuple[ShortText, ...], Items(maximum=8)]] = UNSET
    """The limits that changed this number, in order of application: Metrics, Tolerance, StabilizationWindow,
    Rate, Panic, ScaleToZeroGracePeriod, Bound, Placement. Unset if there are none."""

    panic_since: Maybe[Time] = UNSET
    """The time at which panic mode began. Unset outside of panic mode."""


@declaration()
class AutoscalingPolicyBindingStatus:
    """The observed state of an AutoscalingPolicyBinding, and the last decision about its targets."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status refers to."""

    last_decision_time: Maybe[Time] = UNSET
    """The time at which the decision was written. A later decision with the same result is not written."""

    current_replicas: Maybe[Replicas] = UNSET
    """The number of replicas that all targets currently request."""

    desired_replicas: Maybe[Replicas] = UNSET
    """The desired number of replicas of all targets. Unset while it is not published or cannot be decided."""

    decision: Maybe[BindingDecision] = UNSET
    """The last decision, with its reasons."""

    targets: Maybe[Annotated[tuple[BoundTarget, ...], Items(maximum=256)]] = UNSET
    """The targets, in the order of the spec."""

    metrics: Maybe[Annotated[tuple[BoundMetric, ...], Items(maximum=32), MapKeys("name")]] = UNSET
    """The metrics of the policy."""

    history: Maybe[Annotated[str, Length(maximum=65_536)]] = UNSET
    """The state that decisions depend on: recent recommendations and replica counts, panic mode and activity.
    A new leader continues from it."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the binding. `Ready`: a decision is made, and is followed or advice; the reason is
    that of the worst problem. `PolicyResolved`: the policy exists and is valid. `TargetsResolved`: the
    targets exist, and nothing else scales them. `MetricsAvailable`: the pods report metrics. `ScalingActive`:
    the controller writes the scales itself (direct mode only). `ServiceClassResolved`: the service class
    exists and may be used. `CostResolved`: the writer may set costs. `Placed`: the plan has room for all
    replicas. `AnnotationsResolved`: Stowplan's annotations are valid. `Advisory`: the decision is not
    published."""


_SEGMENT: Final = r"\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*"

MetricPath = Annotated[
    str,
    Length(maximum=256),
    Pattern(
        rf"^/({_SEGMENT}(/{_SEGMENT})*/?)?$",
        says="an absolute path such as /metrics: letters, digits and -._~ between single slashes",
    ),
]
"""A path that is the same in any URL: no escapes, no empty segments, no `.` and no `..`."""

TargetReference = Annotated[
    ObjectReference,
    Cel(
        "has(self.name) && size(self.name) > 0",
        lambda reference: bool(reference.get("name")),
        "must be set and not empty",
        sentence="`name` is set and not empty.",
        field="name",
        reason=REQUIRED,
    ),
    WebhookOnly(
        fully_named, "`kind` and `apiVersion` are set together; only the kind ModelInfer is known by itself."
    ),
]

_OWN_LABEL: Final = "modelinfer.volcano.sh/name"
_NO_OWN_LABEL: Final = f"may not have the key `{_OWN_LABEL}`, which is always the name of the target"

SomeLabels = Annotated[
    dict[str, LabelValue],
    Properties(maximum=10),
    LABELS,
    Cel(
        f"!('{_OWN_LABEL}' in self)",
        lambda labels: _OWN_LABEL not in labels,
        _NO_OWN_LABEL,
        sentence=f"{_NO_OWN_LABEL[0].upper()}{_NO_OWN_LABEL[1:]}.",
        reason=FORBIDDEN,
    ),
]

MOST_TARGET_REPLICAS: Final = 1_000_000
"""The maximum number of replicas of a target."""

FewestReplicas = Annotated[Int32, Range(0, MOST_TARGET_REPLICAS)]
MostReplicas = Annotated[Int32, Range(1, MOST_TARGET_REPLICAS)]


@declaration()
class MetricEndpoint:
    """The endpoint where the pods of a target expose their metrics."""

    uri: MetricPath = "/metrics"
    """The path to scrape, without host, query and fragment."""

    port: Annotated[Int32, Range(1, 65535)] = 8100
    """The port of each pod to scrape."""


@declaration()
class Target:
    """A scale target and its metrics endpoint."""

    target_ref: TargetReference
    """The object to scale, in the namespace of the binding. Without `kind` and `apiVersion` it is a
    ModelInfer of `workload.volcano.sh/v1alpha1`."""

    additional_match_labels: Maybe[SomeLabels] = UNSET
    """Additional labels that the pods of the target must have for their metrics to be counted."""

    metric_endpoint: Maybe[MetricEndpoint] = UNSET
    """The endpoint where the pods are scraped. Defaults to `/metrics` on port 8100."""


@declaration(LessOrEqual("minReplicas", "maxReplicas"))
class ScalingConfiguration:
    """A single target and its replica bounds."""

    target: Target
    """The object to scale, and its metrics endpoint."""

    min_replicas: FewestReplicas
    """The minimum number of replicas, regardless of the metrics. At 0, no pod is left to report metrics."""

    max_replicas: MostReplicas
    """The maximum number of replicas, regardless of the metrics."""


@declaration(LessOrEqual("minReplicas", "maxReplicas"))
class OptimizerParam:
    """One of several heterogeneous targets that share a load."""

    target: Target
    """The object to scale, and its metrics endpoint."""

    cost: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The cost of one replica, in a unit common to all targets. An unset cost is read as 0. Targets of equal
    cost are used in the order of the list."""

    min_replicas: FewestReplicas
    """The minimum number of replicas of this target, regardless of the metrics."""

    max_replicas: MostReplicas
    """The maximum number of replicas of this target, regardless of the metrics."""


@declaration()
class OptimizerConfiguration:
    """Heterogeneous targets, such as one per accelerator type, that share a load at minimum cost."""

    params: Annotated[
        tuple[OptimizerParam, ...],
        Items(1, 256),
        WebhookOnly(distinct_targets, "No two `params` have the same object as their target."),
    ]
    """The targets that share the load. Targets of equal cost are used in the order of the list. The
    annotation `stowplan.dev/capacity` of the binding sets the relative capacities of their replicas, such as
    `llama-h100=2.5,llama-a100=1`. Without it, all replicas have the same capacity."""

    cost_expansion_rate_percent: Annotated[Int32, Range(0)] = 200
    """The maximum cost of all replicas, as a percentage of the minimum cost of serving the load without
    exchanging running replicas. A higher value allows a mix that matches the load more closely: 200 allows
    twice the minimum cost. At 100 or less, and whenever all replicas have the same capacity, the mix has the
    minimum cost."""


@declaration(ExactlyOneOf(("scalingConfiguration", "optimizerConfiguration")))
class AutoscalingPolicyBindingSpec:
    """The desired state of an AutoscalingPolicyBinding: the policy, and the targets that it scales."""

    policy_ref: LocalObjectReference
    """The AutoscalingPolicy, in the namespace of the binding. It may be created later than the binding."""

    optimizer_configuration: Maybe[OptimizerConfiguration] = UNSET
    """Distributes replicas over several targets with different costs and capacities."""

    scaling_configuration: Maybe[ScalingConfiguration] = UNSET
    """Scales a single target by its own metrics."""


@declaration(
    WebhookOnly(own_namespace, "`targetRef.namespace`, where it is set, is the namespace of the binding.")
)
class AutoscalingPolicyBinding:
    """The targets that an AutoscalingPolicy scales. A target belongs to one binding."""

    spec: AutoscalingPolicyBindingSpec
    """The desired state of the binding: the policy, and the targets that it scales."""

    status: Maybe[AutoscalingPolicyBindingStatus] = UNSET
    """The observed state of the binding. Written by the controller."""
