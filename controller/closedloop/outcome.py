"""The outcome of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.closedloop.decided import Decided
    from controller.closedloop.policy import Told


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantiles:
    """Quantiles over requests, in seconds; None if none finished."""

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOutcome:
    """The outcome for the requests of one model; shares are of its requests, 0 to 1.

    A request is missed if it exceeded a target or never finished; one that exceeded both targets counts in
    both shares. Those whose clients gave up are abandoned, and among those that never finished.
    """

    model_id: str
    requests: int
    missed: float
    missed_ttft: float
    missed_itl: float
    never_finished: float
    abandoned: float
    ttft_seconds: Quantiles
    itl_seconds: Quantiles


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantOutcome:
    """The outcome for one variant. A reversal is a change of direction of its requested replicas.

    Decided reversals are those of the replicas its metric alone asks for, whether or not the autoscaler
    followed.
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
    """One model at one time, and over the interval before it; latencies are None if nothing finished."""

    model_id: str
    arrivals_per_second: float
    ttft_p90_seconds: float | None
    itl_p90_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantPoint:
    """One variant at one time: its published metric, and its requested, ready and starting replicas.

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
    """One point in time, in seconds since scoring began: negative in the warm-up. Cost is per hour."""

    seconds: float
    cost_rate: float
    models: tuple[ModelPoint, ...]
    variants: tuple[VariantPoint, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyOutcome:
    """One scenario under one policy; `missed` is over the requests of all models together."""

    scenario: str
    policy: str
    cost: float
    requests: int
    missed: float
    missed_ttft: float
    missed_itl: float
    never_finished: float
    abandoned: float
    models: tuple[ModelOutcome, ...]
    variants: tuple[VariantOutcome, ...]
    points: tuple[Point, ...]
    told: tuple[Told, ...] = ()
    decided: tuple[Decided, ...] = ()
    """The decisions of an AutoscalingPolicy for each of its bindings; empty for other policies."""

    note: str = ""
    """Additional information, such as the result of a search."""

    @property
    def reversals_per_hour(self) -> float:
        """Reversals of all variants together."""
        return sum(variant.reversals_per_hour for variant in self.variants)

    @property
    def decided_reversals_per_hour(self) -> float:
        """Decided reversals of all variants together."""
        return sum(variant.decided_reversals_per_hour for variant in self.variants)
