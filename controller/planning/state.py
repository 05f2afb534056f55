"""The state that planning carries from one cycle to the next, passed in and returned, never stored.

An empty state is sufficient after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.warm_start import DualPrices


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The history of the published replicas of a variant."""

    namespace: str
    name: str
    replicas: int
    """The last published replicas."""

    direction: int = 0
    """Direction of the last change: 1 for up, -1 for down; 0 before the first."""

    reversed_seconds: tuple[float, ...] = ()
    """Recent reversals of direction, in seconds since 1970, oldest first."""

    @property
    def key(self) -> tuple[str, str]:
        """The variant: (namespace, name)."""
        return (self.namespace, self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningState:
    """The state between cycles; sorted by key, so that equal states give equal bytes."""

    courses: tuple[Course, ...] = ()
    prices: DualPrices | None = None
    """Dual prices of the last search, with which the next one starts."""
