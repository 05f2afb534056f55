"""What sizing remembers from one cycle to the next: passed in, passed out, never kept.

After a restart an empty memory will do: step times go on from the status, and arrivals are known after two
answers of the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.sizing.lengths import LengthCounts, Lengths
from controller.sizing.records import Key, Learned, StepParameters
from controller.sizing.step_time import NO_TIMES, Prior, StepTimes


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """What all engines of a model counted in one cycle."""

    moment_seconds: float
    requests_per_second: float
    counts: LengthCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """Requests of engines that are gone may be coming again."""

    ticks: int
    """For how many more ticks that is so. After the last one comes a tick without a cap."""

    most: float
    """The rate before, which counts until then at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelMemory:
    """Of one model."""

    ticks: tuple[Tick, ...] = ()
    """Of the last minutes, oldest first."""

    lengths: Lengths | None = None
    reporting: frozenset[str] = frozenset()
    """Ready pods that have counted."""

    retries: Retries | None = None
    """None while no engine has left lately."""

    silent_since_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantMemory:
    """Of one variant."""

    times: StepTimes = NO_TIMES
    """What its engines showed since they are watched."""

    fit: tuple[Prior, StepParameters | None] | None = None
    """The parameters that fit them best, and what was taken for granted with them."""

    former: Learned | None = None
    """What the status said when they began to be watched."""

    deviation: float | None = None
    """How many times as long steps are as the declared profile predicts; None while nothing was compared."""

    compared: tuple[float, float, float] | None = None
    """The newest comparison: sequences, predicted and shown seconds between two tokens."""

    start_seconds: float | None = None
    kv_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SizingMemory:
    """Of all, by namespace and name."""

    models: Mapping[Key, ModelMemory] = field(default_factory=dict)
    variants: Mapping[Key, VariantMemory] = field(default_factory=dict)
