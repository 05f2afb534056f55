"""What is asked of one measuring process, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field

from hack.fleets.catalogue import Instance
from hack.fleets.score import Unmet


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One engine on one instance."""

    instance: Instance
    engine: str
    seconds: float
    """Of the clock, for each problem; of CPU in a race."""
    rounds: int
    is_race: bool = False
    """Whether time is all that matters: the first level that is not proven ends it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """What an engine proved about one level over every replica mix, given what it reached at those before."""

    value: int
    bound: int
    total: int
    """What the level comes to when nothing is served: a share of a few per mille left over says little."""

    @property
    def gap_percent(self) -> float:
        """How far the value may be from the best, relative to all that is wanted at the level."""
        return 100 * (self.value - self.bound) / self.total if self.value > self.bound else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How an engine did on an instance; sequences in sum or as the mean of their steps."""

    instance: Instance
    engine: str
    variants: int = 0
    nodes: int = 0
    steps: int = 1
    cpu_seconds: tuple[float, ...] = ()
    """Of each solve: repeats of one problem, or the steps of a sequence."""
    wall_seconds: tuple[float, ...] = ()
    peak_mb: float = 0.0
    """Memory at its peak, above what importing the engine takes."""
    plans: tuple[str, ...] = ()
    """Digest of each repeat's whole answer."""
    levels: dict[str, int] = field(default_factory=dict)
    """Value of each, the most important first; cost is the last."""
    bounds: dict[str, Bound] = field(default_factory=dict)
    unmet: tuple[Unmet, ...] = ()
    used_accelerators: int = 0
    """Of sequences, like what starts and stops, from the second step on: the first starts everything."""
    started_accelerators: int = 0
    stopped_accelerators: int = 0
    reversals: int = 0
    """How often a variant of a sequence turned from up to down or back."""
    pending_accelerators: int | None = None
    wrong: tuple[str, ...] = ()
    """Whatever is impossible about its answers."""
    failure: str = ""
    """Why there is no answer."""

    @property
    def worst_gap_percent(self) -> float | None:
        """The largest distance to a proven bound at any level; None where nothing was proven."""
        return max((bound.gap_percent for bound in self.bounds.values()), default=None)
