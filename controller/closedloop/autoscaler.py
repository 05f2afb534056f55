"""A HorizontalPodAutoscaler with one External metric of type AverageValue, in virtual time.

It behaves like the real controller: `k8s.io/kubernetes/pkg/controller/podautoscaler` (`horizontal.go`,
`replica_calculator.go`). Recommendations are recorded before they are stabilized, rate limits count from the
replicas at the start of their period, and the replicas at its start are its first recommendation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from controller.closedloop.behaviour import Behaviour, Direction, Pace

SYNC_SECONDS = 15.0
"""Default sync period of the controller manager, in seconds."""


class _Entry(NamedTuple):
    """A recommended number of replicas, or a change of their number; negative if some were removed."""

    seconds: float
    replicas: int


@dataclass(kw_only=True, slots=True)
class Autoscaler:
    """One HorizontalPodAutoscaler with its state.

    `target_average` is the target value of the metric per replica.
    """

    behaviour: Behaviour
    min_replicas: int
    max_replicas: int
    target_average: float
    has_scaled_to_zero: bool = False
    """Whether it scaled to zero itself: it leaves a target alone that anything else scaled to zero."""

    _recommendations: list[_Entry] = field(default_factory=list)
    _changes: list[_Entry] = field(default_factory=list)

    def sync(self, now_seconds: float, *, replicas: int, pods: int, metric: float | None) -> int:
        """Return the replicas that the target should have now.

        `replicas` is what the target requests, `pods` what its status counts, and `metric` the total, or None
        while it is unavailable: then the replicas are kept, within the bounds.
        """
        if not self._recommendations:
            self._recommendations.append(_Entry(now_seconds, replicas))
        wanted = self._wanted(now_seconds, replicas=replicas, pods=pods, metric=metric)
        if wanted != replicas:
            self._changes.append(_Entry(now_seconds, wanted - replicas))
            self.has_scaled_to_zero = wanted == 0
        return wanted

    def _wanted(self, now_seconds: float, *, replicas: int, pods: int, metric: float | None) -> int:
        if replicas == 0 and (self.min_replicas != 0 or not self.has_scaled_to_zero):
            return 0  # scaled to zero by something else: autoscaling is disabled
        if replicas > self.max_replicas:
            return self.max_replicas
        if replicas < self.min_replicas:
            return self.min_replicas
        if metric is None:
            return replicas
        proposed = self._proposed(metric, pods)
        return self._limited(now_seconds, replicas, self._stabilized(now_seconds, replicas, proposed))

    def _proposed(self, metric: float, pods: int) -> int:
        """Return the replicas for the target average, or the current pods if it is within tolerance."""
        if pods:
            ratio = metric / (self.target_average * pods)
            if 1 - self.behaviour.down.tolerance <= ratio <= 1 + self.behaviour.up.tolerance:
                return pods
        return math.ceil(round(metric / self.target_average, 9))

    def _stabilized(self, now_seconds: float, replicas: int, proposed: int) -> int:
        """Return the replicas that all recommendations within each direction's window allow."""
        up, down = self.behaviour.up.window_seconds, self.behaviour.down.window_seconds
        recent = self._recommendations
        at_least = min([proposed, *(r.replicas for r in recent if r.seconds > now_seconds - up)])
        at_most = max([proposed, *(r.replicas for r in recent if r.seconds > now_seconds - down)])
        kept = [r for r in recent if r.seconds >= now_seconds - max(up, down)]
        self._recommendations = [*kept, _Entry(now_seconds, proposed)]
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
        """Return the limit of one direction's scaling policies."""
        if direction.select == "Disabled":
            return replicas
        limits = [self._reach(now_seconds, replicas, pace, sign=sign) for pace in direction.paces]
        is_far = direction.select == "Max"
        return max(limits) if is_far == (sign > 0) else min(limits)

    def _reach(self, now_seconds: float, replicas: int, pace: Pace, *, sign: int) -> int:
        since_seconds = now_seconds - pace.period_seconds
        at_start = replicas - sum(item.replicas for item in self._changes if item.seconds > since_seconds)
        if pace.type == "Pods":
            return at_start + sign * pace.value
        reached = at_start * (100 + sign * pace.value) / 100
        return math.ceil(reached) if sign > 0 else int(reached)
