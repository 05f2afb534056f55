"""The status of an AutoscalingPolicyBinding. Kthena's reference page declares it empty."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.meta import Condition, Int32, Time
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, MapKeys, Range

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
    """The conditions of the binding. `PolicyResolved`: the policy exists and is valid. `TargetsResolved`: the
    targets exist, and nothing else scales them. `MetricsAvailable`: the pods report metrics. `ScalingActive`:
    the controller writes the scales itself (direct mode only). `ServiceClassResolved`: the service class
    exists and may be used. `CostResolved`: the writer may set costs. `Placed`: the plan has room for all
    replicas. `AnnotationsResolved`: Stowplan's annotations are valid. `Advisory`: the decision is not
    published."""
