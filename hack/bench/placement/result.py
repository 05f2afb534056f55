"""The input and output of one measuring process."""

from __future__ import annotations

from dataclasses import dataclass, field

from hack.fleets.catalogue import Instance
from hack.fleets.score import Unmet


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The measurement of one engine on one instance."""

    instance: Instance
    engine: str
    seconds: float
    """Wall-clock limit of each solve."""
    rounds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The value of one level and its lower bound over every replica mix, given the levels before."""

    value: int
    bound: int
    total: int
    """The value of the level if nothing is served; gaps are relative to it, since values may be almost 0."""

    @property
    def gap_percent(self) -> float:
        """The largest possible distance from the optimum, relative to all that is wanted at the level."""
        return 100 * (self.value - self.bound) / self.total if self.value > self.bound else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineResult:
    """The result of an engine on an instance."""

    instance: Instance
    engine: str
    variants: int = 0
    nodes: int = 0
    cpu_seconds: tuple[float, ...] = ()
    """CPU time of each repeat."""
    wall_seconds: tuple[float, ...] = ()
    peak_mb: float = 0.0
    """Peak memory above that after importing the engine, in MiB."""
    plans: tuple[str, ...] = ()
    """Digest of the answer of each repeat."""
    levels: dict[str, int] = field(default_factory=dict)
    """Value of each level, the most important first; cost is the last."""
    bounds: dict[str, Bound] = field(default_factory=dict)
    unmet: tuple[Unmet, ...] = ()
    pending_accelerators: int | None = None
    wrong: tuple[str, ...] = ()
    """Violated constraints and false claims of its answers."""
    failure: str = ""
    """The reason if there is no answer."""

    @property
    def worst_gap_percent(self) -> float | None:
        """The largest gap to a proven bound at any level; None if there are no bounds."""
        return max((bound.gap_percent for bound in self.bounds.values()), default=None)
