"""The state that sizing carries from one cycle to the next, passed in and returned, never stored.

An empty memory is sufficient after a restart: step times continue from the status, and arrivals are known
after two responses of the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.kinds.identity import Key
from controller.sizing.attainment import NO_EXPERIENCE, Experience, Slots
from controller.sizing.lengths import Lengths
from controller.sizing.records import NO_TARGETS, LearnedProfile, LengthCounts, StepParameters, Targets
from controller.sizing.step_time import NO_TIMES, Prior, StepTimes


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """The counts of all engines of a model in one cycle."""

    moment_seconds: float
    requests_per_second: float
    """Arrivals, including requests that clients gave up."""

    counted_per_second: float
    """Arrivals by the engines' counters."""

    counts: LengthCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelMemory:
    """The memory of one model."""

    ticks: tuple[Tick, ...] = ()
    """Recent ticks, oldest first."""

    lengths: Lengths | None = None
    attained: Slots = ()
    """What was attained in the last hour."""

    required: tuple[tuple[float, float], ...] = ()
    """Times within the hold, with the capacity that was required then, in requests per second."""

    begun_seconds: float | None = None
    """Time of the first cycle with a known load."""

    waiting: int = 0
    """Requests in the queues of all engines, in the last cycle."""

    full_rates: Mapping[Key, float] = field(default_factory=dict)
    """Requests per second that a replica of each variant serves at any latency, in the last cycle."""

    silent_since_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantMemory:
    """The memory of one variant."""

    times: StepTimes = NO_TIMES
    """Observations since the controller watches the engines."""

    fit: tuple[Prior, StepParameters | None] | None = None
    """The prior, and the parameters that fit best with it."""

    result: StepParameters | None = None
    """Time of requests with one result, all of it for their prompts; None if requests have more tokens."""

    experience: Experience = NO_EXPERIENCE
    """What the engines attained at which utilization."""

    promise: Targets = NO_TARGETS
    """The targets of the experience; it begins anew when they change."""

    utilization: float | None = None
    """Utilization that was planned for in the last cycle."""

    former: LearnedProfile | None = None
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
