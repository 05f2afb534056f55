"""How long to wait before the next try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(kw_only=True, slots=True)
class Backoff:
    """Exponential growth up to a limit, each wait stretched at random by up to its own length.

    The figures are those of client-go's reflector. The jitter keeps many clients of a server that comes back
    from arriving together.
    """

    random: Callable[[], float]
    """Gives numbers in [0, 1)."""
    first_seconds: float = 0.8
    limit_seconds: float = 30.0
    _failures: int = 0

    def next_seconds(self, at_least_seconds: float | None = None) -> float:
        """Return the wait after one more failure, not below what the server asked for."""
        base = min(self.first_seconds * 2.0**self._failures, self.limit_seconds)
        if base < self.limit_seconds:
            self._failures += 1
        return max(base * (1.0 + self.random()), at_least_seconds or 0.0)

    def reset(self) -> None:
        """Begin anew after a success."""
        self._failures = 0
