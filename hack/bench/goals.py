"""The goals of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

_WHOLE_FROM: Final = 100
_TENTHS_FROM: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """A measured value, and the maximum that is wanted."""

    name: str
    value: float
    unit: str
    most: float

    @property
    def is_met(self) -> bool:
        """Tell whether the measured value is within the goal."""
        return self.value <= self.most

    def line(self) -> str:
        """Return `goal: NAME VALUE UNIT, wanted <= X: met`, or `missed`."""
        outcome = "met" if self.is_met else "missed"
        return (
            f"goal: {self.name} {short_number(self.value)} {self.unit}, wanted <= {self.most:.4g}: {outcome}"
        )


def at_both_paces(goal: Goal, slowness: float) -> tuple[Goal, Goal]:
    """Return a goal of CPU time as measured, and at the pace of the machine on which it was set."""
    return goal, replace(goal, name=f"{goal.name}_at_reference_pace", value=goal.value / slowness)


def short_number(value: float) -> str:
    """Return a number with two decimals below 10, one below 100, and none above."""
    if abs(value) >= _WHOLE_FROM:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= _TENTHS_FROM else f"{value:.2f}"
