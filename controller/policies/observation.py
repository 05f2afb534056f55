"""What was seen of a target at one moment: its replicas, and what its pods say of each metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from controller.sizing.records import SizingSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A number and its age; one that is not finite, or below 0, says nothing."""

    value: float
    age_seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether it is a number that a metric can mean."""
        return math.isfinite(self.value) and self.value >= 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PodValue:
    """What one ready pod says of a metric; `seen` is None where it says nothing."""

    seen: Value | None
    capacity: float = 1.0
    """What its replica serves beside one of capacity 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSeen:
    """A metric by the ready pods, or as a total over all replicas, which then goes before them."""

    pods: tuple[PodValue, ...] = ()
    total: Value | None = None


class Activity(StrEnum):
    """Whether somebody asks for the workload, by what stands before it."""

    UNWATCHED = "Unwatched"
    """Nobody was told where to look."""

    UNKNOWN = "Unknown"
    IDLE = "Idle"
    SEEN = "Seen"


def activity_among(values: Sequence[Value | None] | None, settings: SizingSettings) -> Activity:
    """Return what some pods say together, each None where it says nothing; None where none is watched."""
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
    """What there is now. Metrics are by their names; one that is left out is not known."""

    current_replicas: int
    """The replicas that are asked for, whether they are ready or not."""

    metrics: Mapping[str, MetricSeen] = field(default_factory=dict)
    activity: Activity = Activity.UNWATCHED
