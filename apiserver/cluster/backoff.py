"""Exponential backoff for retries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(kw_only=True, slots=True)
class Backoff:
    """Exponential backoff up to a limit, in which jitter extends each delay by up to its own length.

    The numbers are those of client-go's reflector. The jitter keeps the many clients of a recovering server
    from retrying at the same time.
    """

    random: Callable[[], float]
    """Returns random numbers in [0, 1)."""
    first_seconds: float = 0.8
    limit_seconds: float = 30.0
    _failures: int = 0

    def next_seconds(self, at_least_seconds: float | None = None) -> float:
        """Return the delay after another failure, at least the one that the server asked for."""
        base = min(self.first_seconds * 2.0**self._failures, self.limit_seconds)
        if base < self.limit_seconds:
            self._failures += 1
        return max(base * (1.0 + self.random()), at_least_seconds or 0.0)

    def reset(self) -> None:
        """Restart from the first delay after a success."""
        self._failures = 0
