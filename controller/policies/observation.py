"""What was seen of a target at one moment: its replicas, and what its pods say of each metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What there is now. Metrics are by their names; one that is left out is not known."""

    current_replicas: int
    """The replicas that are asked for, whether they are ready or not."""

    metrics: Mapping[str, MetricSeen] = field(default_factory=dict)
