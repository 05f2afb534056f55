"""The input of a decision: a policy in numbers and seconds, its binding, and the observation of a target.

A policy has all its defaults applied. A binding has ordered targets with bounds, costs and capacities. An
observation has the replicas of a target at one time, and the metric values of its pods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from apiserver.kinds.activity import ActivitySource, activity_source
from apiserver.kinds.judgement import errors_of
from apiserver.kinds.kthena.autoscaling import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    effective_policy,
)
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject, capacities_of, target_object
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.durations import seconds
from apiserver.schema.json import Json
from apiserver.schema.quantities import amount
from controller.sizing.records import SizingSettings


class UnreadablePolicyError(ValueError):
    """An object that admission would reject; `problems` has one line per error, with its field."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyMetric:
    """A metric, and its target value per replica."""

    name: str
    target: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StableLimits:
    """Rate limits in one direction per period, and the stabilization window."""

    instances: int = 1
    percent: int = 100
    period_seconds: float = 15.0
    select: Literal["Or", "And"] = "Or"
    window_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PanicRules:
    """When demand counts as a surge, and the limits in panic mode."""

    percent: int = 1000
    period_seconds: float
    threshold_percent: int = 200
    hold_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingPolicy:
    """All fields of a policy."""

    metrics: tuple[PolicyMetric, ...]
    tolerance_percent: int = 10
    up: StableLimits = StableLimits()
    down: StableLimits = StableLimits(window_seconds=300.0)
    panic: PanicRules | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Minimum and maximum replicas, and the time without activity before scaling to zero."""

    min_replicas: int
    max_replicas: int
    grace_seconds: float = 0.0


def read_policy(value: Json) -> ScalingPolicy:
    """Return the policy of an AutoscalingPolicy. Raises UnreadablePolicyError if it is invalid."""
    if errors := errors_of(AUTOSCALING_POLICY, AUTOSCALING_POLICY.storage_version, value):
        raise UnreadablePolicyError(tuple(map(str, errors)))
    spec = effective_policy(value["spec"])
    up, down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
    panic = up.get("panicPolicy")
    return ScalingPolicy(
        metrics=tuple(
            PolicyMetric(name=item["metricName"], target=float(amount(item["targetValue"]) or 0))
            for item in spec["metrics"]
        ),
        tolerance_percent=int(spec["tolerancePercent"]),
        up=_limits(up["stablePolicy"]),
        down=_limits(down),
        panic=None if panic is None else _panic(panic),
    )


def _limits(block: Json) -> StableLimits:
    return StableLimits(
        instances=int(block["instances"]),
        percent=int(block["percent"]),
        period_seconds=_seconds(block["period"]),
        select=block["selectPolicy"],
        window_seconds=_seconds(block["stabilizationWindow"]),
    )


def _panic(block: Json) -> PanicRules:
    return PanicRules(
        percent=int(block["percent"]),
        period_seconds=_seconds(block["period"]),
        threshold_percent=int(block["panicThresholdPercent"]),
        hold_seconds=_seconds(block["panicModeHold"]),
    )


def _seconds(text: str) -> float:
    return seconds(text) or 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A number and its age; values that are not finite or negative count as unknown."""

    value: float
    age_seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the value is a valid metric value."""
        return math.isfinite(self.value) and self.value >= 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PodValue:
    """The metric value of one ready pod; `seen` is None if it does not report the metric."""

    seen: Value | None
    capacity: float = 1.0
    """Capacity of its replica relative to one of capacity 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricObservation:
    """A metric of the ready pods, or as a total over all replicas, which takes precedence."""

    pods: tuple[PodValue, ...] = ()
    total: Value | None = None


class Activity(StrEnum):
    """Whether there are requests for the workload, according to the activity source in front of it."""

    UNWATCHED = "Unwatched"
    """No activity source is configured."""

    UNKNOWN = "Unknown"
    IDLE = "Idle"
    SEEN = "Seen"


def activity_among(values: Sequence[Value | None] | None, settings: SizingSettings) -> Activity:
    """Return the activity from pods' values, None for a silent pod; `values` is None if none is watched."""
    if values is None:
        return Activity.UNWATCHED
    known = [
        value for value in values if value and value.is_known and value.age_seconds <= settings.held_seconds
    ]
    if any(value.value > 0 for value in known):
        return Activity.SEEN
    is_idle = values and len(known) == len(values)
    is_fresh = all(value.age_seconds <= settings.fresh_seconds for value in known)
    return Activity.IDLE if is_idle and is_fresh else Activity.UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """The current observation. Metrics are keyed by name; a missing one is unknown."""

    current_replicas: int
    """Requested replicas, ready or not."""

    metrics: Mapping[str, MetricObservation] = field(default_factory=dict)
    activity: Activity = Activity.UNWATCHED


DEFAULT_URI = "/metrics"
DEFAULT_PORT = 8100


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyTarget:
    """One target of a binding."""

    target: TargetObject
    min_replicas: int
    max_replicas: int
    cost: int = 0
    capacity: float = 1.0
    uri: str = DEFAULT_URI
    port: int = DEFAULT_PORT
    labels: tuple[tuple[str, str], ...] = ()
    """Additional labels that pods must have for their metrics to count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """The targets that a policy scales; `expansion_percent` is None for a single target."""

    policy: str
    targets: tuple[PolicyTarget, ...]
    expansion_percent: int | None = None
    activity: ActivitySource | None = None
    """Source of activity for requests that arrive while there are no replicas."""

    @property
    def capacities(self) -> tuple[float, ...]:
        """Capacity of one replica of each target; 1 for a single target."""
        is_alone = self.expansion_percent is None
        return tuple(1.0 if is_alone else target.capacity for target in self.targets)

    @property
    def is_alike(self) -> bool:
        """Whether all replicas have capacity 1."""
        return all(capacity == 1 for capacity in self.capacities)

    def capacity_of(self, replicas: Sequence[int]) -> float:
        """Return the combined capacity of replicas of the targets, in replicas of capacity 1."""
        return math.fsum(each * count for each, count in zip(self.capacities, replicas, strict=True))


def read_binding(value: Json) -> Binding:
    """Return the binding of an AutoscalingPolicyBinding. Raises UnreadablePolicyError if it is invalid."""
    version = AUTOSCALING_POLICY_BINDING.storage_version
    if errors := errors_of(AUTOSCALING_POLICY_BINDING, version, value):
        raise UnreadablePolicyError(tuple(map(str, errors)))
    spec = with_defaults(version, value)["spec"]
    capacities = capacities_of(value)
    optimizer = spec.get("optimizerConfiguration")
    around = [spec["scalingConfiguration"]] if optimizer is None else optimizer["params"]
    return Binding(
        policy=spec["policyRef"]["name"],
        targets=tuple(
            _target(item, capacities.of.get(item["target"]["targetRef"]["name"], 1.0)) for item in around
        ),
        expansion_percent=None if optimizer is None else int(optimizer["costExpansionRatePercent"]),
        activity=activity_source(value),
    )


def lone_binding(name: str, *, min_replicas: int, max_replicas: int) -> Binding:
    """Return a binding of one Deployment, for a policy without a binding."""
    target = TargetObject(api_version="apps/v1", kind="Deployment", name=name)
    bound = PolicyTarget(target=target, min_replicas=min_replicas, max_replicas=max_replicas)
    return Binding(policy="", targets=(bound,))


def _target(around: Json, capacity: float) -> PolicyTarget:
    target = around["target"]
    endpoint = target.get("metricEndpoint") or {}
    return PolicyTarget(
        target=target_object(target["targetRef"]),
        min_replicas=int(around["minReplicas"]),
        max_replicas=int(around["maxReplicas"]),
        cost=int(around.get("cost") or 0),
        capacity=capacity,
        uri=endpoint.get("uri") or DEFAULT_URI,
        port=int(endpoint.get("port") or DEFAULT_PORT),
        labels=tuple(sorted((target.get("additionalMatchLabels") or {}).items())),
    )
