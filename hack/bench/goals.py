"""A goal that a benchmark measured itself against, as one line and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_WHOLE_FROM: Final = 100
_TENTHS_FROM: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """Something measured, and the most that it should be."""

    name: str
    value: float
    unit: str
    most: float
    is_upper_bound: bool = False
    """Whether it may be less than what was measured: then it can be met, and is never known to be missed."""

    @property
    def is_met(self) -> bool:
        """Tell whether the measured value is within the goal."""
        return self.value <= self.most

    @property
    def outcome(self) -> str:
        """How it went, in a word or two."""
        if self.is_met:
            return "met"
        return "not shown" if self.is_upper_bound else "missed"

    @property
    def measured(self) -> str:
        """The value in its unit."""
        return f"{'at most ' if self.is_upper_bound else ''}{shown(self.value)} {self.unit}"

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


def shown(value: float) -> str:
    """Return a measured number with as many places as it deserves: three digits, no exponent."""
    if abs(value) >= _WHOLE_FROM:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= _TENTHS_FROM else f"{value:.2f}"
