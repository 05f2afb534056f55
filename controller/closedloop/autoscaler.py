"""A HorizontalPodAutoscaler with one External metric of type AverageValue, in virtual time.

It behaves as the real controller does: `k8s.io/kubernetes/pkg/controller/podautoscaler` (`horizontal.go`,
`replica_calculator.go`). What it read is remembered before it is smoothed, rates count from what there was at
the start of their period, and the replicas that it finds at its start are its first recommendation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.closedloop.behaviour import Behaviour, Direction, Pace

SYNC_SECONDS = 15.0
"""Time between two looks at the metric, unless the controller manager is told otherwise."""


@dataclass(frozen=True, slots=True)
class _Recommendation:
    seconds: float
    replicas: int


@dataclass(frozen=True, slots=True)
class _Change:
    """Replicas that were added, or taken away; never negative."""

    seconds: float
    replicas: int


@dataclass(kw_only=True, slots=True)
class Autoscaler:
    """One HorizontalPodAutoscaler and what it remembers.

    `target_average` is how much of the metric there is to be per replica.
    """

    behaviour: Behaviour
    min_replicas: int
    max_replicas: int
    target_average: float
    has_scaled_to_zero: bool = False
    """Whether zero replicas are its own doing: what others set to zero it leaves alone."""

    _recommendations: list[_Recommendation] = field(default_factory=list)
    _added: list[_Change] = field(default_factory=list)
    _removed: list[_Change] = field(default_factory=list)

    def sync(self, now_seconds: float, *, replicas: int, pods: int, metric: float | None) -> int:
        """Return the replicas that the target is to have now.

        `replicas` is what the target asks for, `pods` what its status counts, and `metric` the total, or None
        while it is not available: then everything stays.
        """
        if not self._recommendations:
            self._recommendations.append(_Recommendation(now_seconds, replicas))
        wanted = self._wanted(now_seconds, replicas=replicas, pods=pods, metric=metric)
        if wanted > replicas:
            self._added.append(_Change(now_seconds, wanted - replicas))
        elif wanted < replicas:
            self._removed.append(_Change(now_seconds, replicas - wanted))
        if wanted != replicas:
            self.has_scaled_to_zero = wanted == 0
        return wanted

    def _wanted(self, now_seconds: float, *, replicas: int, pods: int, metric: float | None) -> int:
        if replicas == 0 and (self.min_replicas != 0 or not self.has_scaled_to_zero):
            return 0  # somebody else scaled it to zero: autoscaling is disabled
        if replicas > self.max_replicas:
            return self.max_replicas
        if replicas < self.min_replicas:
            return self.min_replicas
        if metric is None:
            return replicas
        proposed = self._proposed(metric, pods)
        return self._limited(now_seconds, replicas, self._stabilized(now_seconds, replicas, proposed))

    def _proposed(self, metric: float, pods: int) -> int:
        """Return as many replicas as share the metric evenly, or those that there are if that is near."""
        if pods:
            ratio = metric / (self.target_average * pods)
            if 1 - self.behaviour.down.tolerance <= ratio <= 1 + self.behaviour.up.tolerance:
                return pods
        return math.ceil(round(metric / self.target_average, 9))

    def _stabilized(self, now_seconds: float, replicas: int, proposed: int) -> int:
        """Return the step that all recommendations within each direction's window agree to."""
        up, down = self.behaviour.up.window_seconds, self.behaviour.down.window_seconds
        recent = self._recommendations
        at_least = min([proposed, *(r.replicas for r in recent if r.seconds > now_seconds - up)])
        at_most = max([proposed, *(r.replicas for r in recent if r.seconds > now_seconds - down)])
        kept = [r for r in recent if r.seconds >= now_seconds - max(up, down)]
        self._recommendations = [*kept, _Recommendation(now_seconds, proposed)]
        return min(max(replicas, at_least), at_most)

    def _limited(self, now_seconds: float, replicas: int, wanted: int) -> int:
        if wanted > replicas:
            limit = max(replicas, self._limit(now_seconds, replicas, self.behaviour.up, sign=1))
            return min(wanted, self.max_replicas, limit)
        if wanted < replicas:
            limit = min(replicas, self._limit(now_seconds, replicas, self.behaviour.down, sign=-1))
            return max(wanted, self.min_replicas, limit)
        return wanted

    def _limit(self, now_seconds: float, replicas: int, direction: Direction, *, sign: int) -> int:
        """Return how far one direction's policies let it go."""
        if direction.select == "Disabled":
            return replicas
        limits = [self._reach(now_seconds, replicas, pace, sign=sign) for pace in direction.paces]
        is_far = direction.select == "Max"
        return max(limits) if is_far == (sign > 0) else min(limits)

    def _reach(self, now_seconds: float, replicas: int, pace: Pace, *, sign: int) -> int:
        since_seconds = now_seconds - pace.period_seconds
        added = sum(change.replicas for change in self._added if change.seconds > since_seconds)
        removed = sum(change.replicas for change in self._removed if change.seconds > since_seconds)
        at_start = replicas - added + removed
        if pace.type == "Pods":
            return at_start + sign * pace.value
        reached = at_start * (100 + sign * pace.value) / 100
        return math.ceil(reached) if sign > 0 else int(reached)
