"""The observation of a target at one time: its replicas, and the metric values of its pods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from controller.sizing.records import SizingSettings


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
class MetricSeen:
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

    metrics: Mapping[str, MetricSeen] = field(default_factory=dict)
    activity: Activity = Activity.UNWATCHED
