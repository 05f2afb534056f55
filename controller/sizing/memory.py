"""The state that sizing carries from one cycle to the next, passed in and returned, never stored.

An empty memory is sufficient after a restart: step times continue from the status, and arrivals are known
after two responses of the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.sizing.lengths import Lengths
from controller.sizing.records import Key, Learned, LengthCounts, StepParameters
from controller.sizing.step_time import NO_TIMES, Prior, StepTimes


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """The counts of all engines of a model in one cycle."""

    moment_seconds: float
    requests_per_second: float
    counts: LengthCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """The state after engines left whose requests clients may be retrying."""

    ticks: int
    """Remaining capped ticks. After the last one comes a tick without a cap."""

    most: float
    """The rate before, which caps the rate until then, in requests per second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelMemory:
    """The memory of one model."""

    ticks: tuple[Tick, ...] = ()
    """Recent ticks, oldest first."""

    lengths: Lengths | None = None
    reporting: frozenset[str] = frozenset()
    """Ready pods whose engines have counted."""

    retries: Retries | None = None
    """None if no engine left recently."""

    silent_since_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantMemory:
    """The memory of one variant."""

    times: StepTimes = NO_TIMES
    """Observations since the controller watches the engines."""

    fit: tuple[Prior, StepParameters | None] | None = None
    """The prior, and the parameters that fit best with it."""

    former: Learned | None = None
    """Performance in the status when the controller began to watch."""

    deviation: float | None = None
    """Ratio of observed step times to those the declared profile predicts; None before the first comparison.
    """

    compared: tuple[float, float, float] | None = None
    """The latest comparison: sequences, predicted and observed seconds between two tokens."""

    start_seconds: float | None = None
    kv_tokens: int | None = None
    engines: int = 1
    """Engines of a replica, each with a batch of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizingMemory:
    """The memory of all models and variants, by namespace and name."""

    models: Mapping[Key, ModelMemory] = field(default_factory=dict)
    variants: Mapping[Key, VariantMemory] = field(default_factory=dict)
