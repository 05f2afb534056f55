"""The expected request rate over time, without randomness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Shape = Literal["constant", "step", "spike", "ramp", "sine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Requests per second over time, between `low` and `high`.

    - constant: always `high`.
    - step: `low`, and from `at_seconds` on `high`.
    - spike: `high` for `length_seconds` from `at_seconds` on, repeated every `period_seconds` if given; `low`
      otherwise.
    - ramp: linear from `low` to `high`, starting at `at_seconds` and lasting `length_seconds`.
    - sine: between both with a period of `period_seconds`, starting at `low`; a day is 86400.

    Raises ValueError, naming every field that is out of range.
    """

    shape: Shape
    high: float
    low: float = 0.0
    at_seconds: float = 0.0
    length_seconds: float = 0.0
    period_seconds: float = 0.0

    def __post_init__(self) -> None:
        wrong = [
            f"{name} must be a number that is 0 or greater"
            for name in ("high", "low", "at_seconds", "length_seconds", "period_seconds")
            if not 0 <= getattr(self, name) < math.inf
        ]
        if self.shape == "sine" and not self.period_seconds > 0:
            wrong.append("period_seconds must be greater than 0 for a sine")
        if self.shape in ("spike", "ramp") and not self.length_seconds > 0:
            wrong.append(f"length_seconds must be greater than 0 for a {self.shape}")
        if wrong:
            raise ValueError("; ".join(wrong))

    def rate(self, seconds: float) -> float:
        """Return the requests per second at a time."""
        since = seconds - self.at_seconds
        return self.low + self._share(since) * (self.high - self.low)

    def _share(self, since_seconds: float) -> float:
        match self.shape:
            case "constant":
                return 1.0
            case "step":
                return float(since_seconds >= 0)
            case "spike":
                is_repeated = self.period_seconds > 0 and since_seconds >= 0
                within_seconds = since_seconds % self.period_seconds if is_repeated else since_seconds
                return float(0 <= within_seconds < self.length_seconds)
            case "ramp":
                return min(1.0, max(0.0, since_seconds / self.length_seconds))
            case "sine":
                return (1 - math.cos(2 * math.pi * since_seconds / self.period_seconds)) / 2
