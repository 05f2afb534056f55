"""What planning remembers from one cycle to the next: passed in, passed out, never kept.

After a restart an empty state will do.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.warm_start import DualPrices


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """How the published replicas of a variant have moved."""

    namespace: str
    name: str
    replicas: int
    """What was published last."""

    direction: int = 0
    """Of the last change: 1 for up, -1 for down; 0 before the first."""

    reversed_seconds: tuple[float, ...] = ()
    """When it turned from up to down or back, oldest first; only of late."""

    @property
    def key(self) -> tuple[str, str]:
        """The variant: (namespace, name)."""
        return (self.namespace, self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningState:
    """Memory between cycles; sorted by key, so that equal memories are equal bytes.

    Raises ValueError when a moment is none.
    """

    courses: tuple[Course, ...] = ()
    prices: DualPrices | None = None
    """Of the last search: where the next one begins."""
