"""The goals of benchmarks, as one line of output and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

_WHOLE_FROM: Final = 100
_TENTHS_FROM: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """A measured value, and the maximum that is wanted."""

    name: str
    value: float
    unit: str
    most: float
    is_upper_bound: bool = False
    """Whether the value is only an upper bound: the goal may then be met, but is never known to be missed."""

    @property
    def is_met(self) -> bool:
        """Tell whether the measured value is within the goal."""
        return self.value <= self.most

    @property
    def outcome(self) -> str:
        """`met`, `missed` or, for an upper bound above the maximum, `not shown`."""
        if self.is_met:
            return "met"
        return "not shown" if self.is_upper_bound else "missed"

    @property
    def measured(self) -> str:
        """The value with its unit."""
        return f"{'at most ' if self.is_upper_bound else ''}{short_number(self.value)} {self.unit}"

    def line(self) -> str:
        """Return `goal: NAME VALUE UNIT, wanted <= X: met`, or `missed`, or `not shown`."""
        return f"goal: {self.name} {self.measured}, wanted <= {self.most:.4g}: {self.outcome}"

    def as_json(self) -> dict[str, Any]:
        """Return the goal as a member of a results file."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "most": self.most,
            "met": self.is_met,
        } | ({"upper_bound": True} if self.is_upper_bound else {})


def at_both_paces(goal: Goal, slowness: float) -> tuple[Goal, Goal]:
    """Return a goal of CPU time as measured, and at the pace of the machine on which it was set."""
    return goal, replace(goal, name=f"{goal.name}_at_reference_pace", value=goal.value / slowness)


def short_number(value: float) -> str:
    """Return a number with two decimals below 10, one below 100, and none above."""
    if abs(value) >= _WHOLE_FROM:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= _TENTHS_FROM else f"{value:.2f}"
