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

    @property
    def is_met(self) -> bool:
        """Tell whether the measured value is within the goal."""
        return self.value <= self.most

    def line(self) -> str:
        """Return `goal: NAME VALUE UNIT, wanted <= X: met`, or `missed`."""
        outcome = "met" if self.is_met else "missed"
        return f"goal: {self.name} {shown(self.value)} {self.unit}, wanted <= {self.most:.4g}: {outcome}"

    def as_json(self) -> dict[str, Any]:
        """Return the goal as a member of a results file."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "most": self.most,
            "met": self.is_met,
        }


def shown(value: float) -> str:
    """Return a measured number with as many places as it deserves: three digits, no exponent."""
    if abs(value) >= _WHOLE_FROM:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= _TENTHS_FROM else f"{value:.2f}"
