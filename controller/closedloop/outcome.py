"""What a run came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.closedloop.policy import Told


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantiles:
    """Seconds that half, nine of ten and 99 of 100 requests stayed within; None where none finished."""

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOutcome:
    """What the requests of one model met; shares are of its requests, 0 to 1.

    A request is missed that took longer than a target, or never finished; who missed both counts in both.
    """

    model_id: str
    requests: int
    missed: float
    missed_ttft: float
    missed_itl: float
    never_finished: float
    ttft_seconds: Quantiles
    itl_seconds: Quantiles


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantOutcome:
    """What one variant did. A reversal is a change of direction of the replicas that were asked for.

    Decided reversals are those of what its metric alone asks for, whether the autoscaler followed or not.
    """

    name: str
    model_id: str
    cost: float
    replica_hours: float
    reversals_per_hour: float
    decided_reversals_per_hour: float
    peak_replicas: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPoint:
    """One model at one moment, and over the interval before it; None where nothing finished."""

    model_id: str
    arrivals_per_second: float
    ttft_p90_seconds: float | None
    itl_p90_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantPoint:
    """One variant at one moment: published metric, replicas asked for, ready, and on their way.

    `wanted` are the replicas that the metric alone asks for, without the autoscaler's rules.
    """

    name: str
    published: float | None
    wanted: float | None
    spec: int
    ready: int
    starting: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One moment, in seconds since scoring began: negative in the warm-up. Cost is per hour."""

    seconds: float
    cost_rate: float
    models: tuple[ModelPoint, ...]
    variants: tuple[VariantPoint, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One scenario under one policy; `missed` is over the requests of all models together."""

    scenario: str
    policy: str
    cost: float
    requests: int
    missed: float
    missed_ttft: float
    missed_itl: float
    never_finished: float
    models: tuple[ModelOutcome, ...]
    variants: tuple[VariantOutcome, ...]
    points: tuple[Point, ...]
    told: tuple[Told, ...] = ()
    note: str = ""
    """What else there is to know, such as the figure that a search ended with."""

    @property
    def reversals_per_hour(self) -> float:
        """Of all variants together."""
        return sum(variant.reversals_per_hour for variant in self.variants)

    @property
    def decided_reversals_per_hour(self) -> float:
        """Of all variants together."""
        return sum(variant.decided_reversals_per_hour for variant in self.variants)
