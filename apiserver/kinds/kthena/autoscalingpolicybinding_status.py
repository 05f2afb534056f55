"""What the controller writes into the status of a binding. The reference page declares it empty."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.meta import Condition, Int32, Time
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, MapKeys, Range

Replicas = Annotated[Int32, Range(0)]
ShortText = Annotated[str, Length(1, 64)]
Number = Annotated[str, Length(1, 32)]
"""A number as text, with six digits or so."""


@declaration()
class BoundTarget:
    """One target, with its replicas as they are and as they should be."""

    kind: Annotated[str, Length(maximum=63)]
    """Kind of the object."""

    name: Annotated[str, Length(maximum=253)]
    """Name of the object."""

    current_replicas: Maybe[Replicas] = UNSET
    """Replicas that it asks for now."""

    replicas: Maybe[Replicas] = UNSET
    """Replicas that it should have. Missing while the decision is advice only, or cannot be taken."""


@declaration()
class BoundMetric:
    """One metric of the policy, as the pods of the targets report it."""

    name: Annotated[str, Length(maximum=256)]
    """Name of the metric."""

    target_value: Number
    """What one replica should show."""

    value: Maybe[Number] = UNSET
    """Its sum over the replicas that report. Missing while it is not known."""

    replicas: Maybe[Replicas] = UNSET
    """Replicas that it asks for, without any limit."""

    signal: Literal["Fresh", "Quorum", "Held", "Unknown"]
    """How well it is known."""

    age_seconds: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """Age of the oldest report that counts."""

    silent_pods: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """Ready pods that say nothing of it."""


@declaration()
class BindingDecision:
    """The last decision on all targets together."""

    message: Annotated[str, Length(maximum=1024)]
    """The decision with its reasons and their numbers, in one sentence."""

    wanted_replicas: Maybe[Replicas] = UNSET
    """Replicas that the metrics ask for, without any limit. Missing while no metric is known."""

    limited_by: Maybe[Annotated[tuple[ShortText, ...], Items(maximum=8)]] = UNSET
    """What made something else of that, in order: Metrics, Tolerance, StabilizationWindow, Rate, Panic,
    ScaleToZeroGracePeriod, Bound."""

    panic_since: Maybe[Time] = UNSET
    """Since when panic mode holds. Missing outside of it."""


@declaration()
class AutoscalingPolicyBindingStatus:
    """The observed state of an AutoscalingPolicyBinding, and the last decision about its targets."""

    observed_generation: Maybe[Annotated[int, Range(0)]] = UNSET
    """The generation of the spec that the status is about."""

    last_decision_time: Maybe[Time] = UNSET
    """When the decision was written. Later ones that came to the same are not written."""

    current_replicas: Maybe[Replicas] = UNSET
    """Replicas that all targets ask for now."""

    desired_replicas: Maybe[Replicas] = UNSET
    """Replicas that all targets should have. Missing while that is advice only, or cannot be decided."""

    decision: Maybe[BindingDecision] = UNSET
    """The reasons for the last decision."""

    targets: Maybe[Annotated[tuple[BoundTarget, ...], Items(maximum=256)]] = UNSET
    """The targets, in the order of the spec."""

    metrics: Maybe[Annotated[tuple[BoundMetric, ...], Items(maximum=32), MapKeys("name")]] = UNSET
    """The metrics of the policy."""

    history: Maybe[Annotated[str, Length(maximum=65_536)]] = UNSET
    """What decisions remember: recent recommendations and numbers of replicas, panic and activity. Whoever
    leads next goes on from here."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """`PolicyResolved`: the policy is there and valid. `TargetsResolved`: so are the targets, and nobody else
    scales them. `MetricsAvailable`: the pods report. `AnnotationsResolved`: Stowplan's annotations are
    understood. `Advisory`: the decision is advice only."""
