"""A HorizontalPodAutoscaler with one External metric of type AverageValue, in virtual time, and its rules.

It behaves like the real controller: `k8s.io/kubernetes/pkg/controller/podautoscaler` (`horizontal.go`,
`replica_calculator.go`). Recommendations are recorded before they are stabilized, rate limits count from the
replicas at the start of their period, and the replicas at its start are its first recommendation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from apiserver.schema.json import Json
from apiserver.schema.quantities import amount

SYNC_SECONDS = 15.0
"""Default sync period of the controller manager, in seconds."""

Select = Literal["Max", "Min", "Disabled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingPace:
    """A number of pods, or a percentage of them, per period."""

    type: Literal["Pods", "Percent"]
    value: int
    period_seconds: int = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingRules:
    """The rules for one direction; `tolerance` is the relative deviation from the target that is ignored."""

    window_seconds: int
    paces: tuple[ScalingPace, ...]
    select: Select = "Max"
    tolerance: float = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviour:
    """The rules for both directions, with the defaults of Kubernetes."""

    up: ScalingRules = ScalingRules(
        window_seconds=0, paces=(ScalingPace(type="Percent", value=100), ScalingPace(type="Pods", value=4))
    )
    down: ScalingRules = ScalingRules(window_seconds=300, paces=(ScalingPace(type="Percent", value=100),))

    def without_tolerance(self) -> Behaviour:
        """Return the rules without tolerance, for a metric that is itself a number of replicas."""
        return Behaviour(up=replace(self.up, tolerance=0.0), down=replace(self.down, tolerance=0.0))


DEFAULT_BEHAVIOUR = Behaviour()
"""The defaults of Kubernetes."""


def behaviour_of(spec: Json) -> Behaviour:
    """Return the behavior in the spec of a valid HorizontalPodAutoscaler, with defaults applied."""
    rules, default = spec.get("behavior") or {}, DEFAULT_BEHAVIOUR
    return Behaviour(
        up=_direction(rules.get("scaleUp") or {}, default.up),
        down=_direction(rules.get("scaleDown") or {}, default.down),
    )


def as_behaviour(behaviour: Behaviour) -> Json:
    """Return the equivalent `spec.behavior`."""
    return {"scaleUp": _as_rules(behaviour.up), "scaleDown": _as_rules(behaviour.down)}


def _direction(rules: Json, default: ScalingRules) -> ScalingRules:
    paces = tuple(
        ScalingPace(type=item["type"], value=int(item["value"]), period_seconds=int(item["periodSeconds"]))
        for item in rules.get("policies") or []
    )
    window, tolerance = rules.get("stabilizationWindowSeconds"), rules.get("tolerance")
    return ScalingRules(
        window_seconds=default.window_seconds if window is None else int(window),
        paces=paces or default.paces,
        select=rules.get("selectPolicy") or default.select,
        tolerance=default.tolerance if tolerance is None else float(amount(tolerance) or 0),
    )


def _as_rules(direction: ScalingRules) -> Json:
    return {
        "stabilizationWindowSeconds": direction.window_seconds,
        "selectPolicy": direction.select,
        "tolerance": f"{direction.tolerance:g}",
        "policies": [
            {"type": pace.type, "value": pace.value, "periodSeconds": pace.period_seconds}
            for pace in direction.paces
        ],
    }


class _ReplicaEvent(NamedTuple):
    """A recommended number of replicas, or a change of their number; negative if some were removed."""

    seconds: float
    replicas: int


@dataclass(kw_only=True, slots=True)
class SimulatedAutoscaler:
    """One HorizontalPodAutoscaler with its state.

    `target_average` is the target value of the metric per replica.
    """

    behaviour: Behaviour
    min_replicas: int
    max_replicas: int
    target_average: float
    has_scaled_to_zero: bool = False
    """Whether it scaled to zero itself: it leaves a target alone that anything else scaled to zero."""

    _recommendations: list[_ReplicaEvent] = field(default_factory=list)
    _changes: list[_ReplicaEvent] = field(default_factory=list)

    def sync(self, now_seconds: float, *, replicas: int, pods: int, metric: float | None) -> int:
        """Return the replicas that the target should have now.

        `replicas` is what the target requests, `pods` what its status counts, and `metric` the total, or None
        while it is unavailable: then the replicas are kept, within the bounds.
        """
        if not self._recommendations:
            self._recommendations.append(_ReplicaEvent(now_seconds, replicas))
        recommended = self._next_replicas(now_seconds, replicas=replicas, pods=pods, metric=metric)
        if recommended != replicas:
            self._changes.append(_ReplicaEvent(now_seconds, recommended - replicas))
            self.has_scaled_to_zero = recommended == 0
        return recommended

    def _next_replicas(self, now_seconds: float, *, replicas: int, pods: int, metric: float | None) -> int:
        if replicas == 0 and (self.min_replicas != 0 or not self.has_scaled_to_zero):
            return 0  # scaled to zero by something else: autoscaling is disabled
        if replicas > self.max_replicas:
            return self.max_replicas
        if replicas < self.min_replicas:
            return self.min_replicas
        if metric is None:
            return replicas
        proposed = self._proposal(metric, pods)
        return self._limit_pace(now_seconds, replicas, self._stabilize(now_seconds, replicas, proposed))

    def _proposal(self, metric: float, pods: int) -> int:
        """Return the replicas for the target average, or the current pods if it is within tolerance."""
        if pods:
            ratio = metric / (self.target_average * pods)
            if 1 - self.behaviour.down.tolerance <= ratio <= 1 + self.behaviour.up.tolerance:
                return pods
        return math.ceil(round(metric / self.target_average, 9))

    def _stabilize(self, now_seconds: float, replicas: int, proposed: int) -> int:
        """Return the replicas that all recommendations within each direction's window allow."""
        up, down = self.behaviour.up.window_seconds, self.behaviour.down.window_seconds
        recent = self._recommendations
        at_least = min([proposed, *(r.replicas for r in recent if r.seconds > now_seconds - up)])
        at_most = max([proposed, *(r.replicas for r in recent if r.seconds > now_seconds - down)])
        kept = [r for r in recent if r.seconds >= now_seconds - max(up, down)]
        self._recommendations = [*kept, _ReplicaEvent(now_seconds, proposed)]
        # Both only hold back: replicas grow to the lowest of one window, and shrink to the highest of one.
        return min(max(replicas, at_least), at_most)

    def _limit_pace(self, now_seconds: float, replicas: int, recommended: int) -> int:
        if recommended > replicas:
            limit = max(replicas, self._limit(now_seconds, replicas, self.behaviour.up, sign=1))
            return min(recommended, self.max_replicas, limit)
        if recommended < replicas:
            limit = min(replicas, self._limit(now_seconds, replicas, self.behaviour.down, sign=-1))
            return max(recommended, self.min_replicas, limit)
        return recommended

    def _limit(self, now_seconds: float, replicas: int, direction: ScalingRules, *, sign: int) -> int:
        """Return the limit of one direction's scaling policies."""
        if direction.select == "Disabled":
            return replicas
        limits = [self._reach(now_seconds, replicas, pace, sign=sign) for pace in direction.paces]
        is_far = direction.select == "Max"
        return max(limits) if is_far == (sign > 0) else min(limits)

    def _reach(self, now_seconds: float, replicas: int, pace: ScalingPace, *, sign: int) -> int:
        since_seconds = now_seconds - pace.period_seconds
        at_start = replicas - sum(item.replicas for item in self._changes if item.seconds > since_seconds)
        if pace.type == "Pods":
            return at_start + sign * pace.value
        # As in the real controller, rounding is in favor of the change, in both directions.
        reached = at_start * (100 + sign * pace.value) / 100
        return math.ceil(reached) if sign > 0 else int(reached)
