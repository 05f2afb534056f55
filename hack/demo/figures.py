"""Recent measurements of one model's clients: request rate and time to first token."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import quantiles

from controller.simulation.batch import Completion
from hack.demo.observation import ClientView

RATE_WINDOW_SECONDS = 10.0
LATENCY_WINDOW_SECONDS = 20.0
_FEWEST = 5


class RecentFigures:
    """Sliding windows over arrivals and completions, in seconds of simulated time."""

    def __init__(self) -> None:
        self._arrived: deque[tuple[float, int]] = deque([(0.0, 0)])
        self._waits: deque[tuple[float, float]] = deque()

    def update(self, now_seconds: float, *, arrived: int, finished: Iterable[Completion]) -> None:
        """Add the total number of arrivals so far, and the completions since the last call."""
        self._arrived.append((now_seconds, arrived))
        while len(self._arrived) > 1 and self._arrived[1][0] <= now_seconds - RATE_WINDOW_SECONDS:
            self._arrived.popleft()
        self._waits.extend((c.finish_us / 1e6, c.time_to_first_token_seconds) for c in finished)
        while self._waits and self._waits[0][0] <= now_seconds - LATENCY_WINDOW_SECONDS:
            self._waits.popleft()

    def view(self, *, unfinished_requests: int) -> ClientView:
        """Return the current measurements."""
        (first, before), (last, now) = self._arrived[0], self._arrived[-1]
        waits = [seconds for _, seconds in self._waits]
        return ClientView(
            requests_per_second=(now - before) / (last - first) if last > first else 0.0,
            ttft_p90_ms=quantiles(waits, n=10)[-1] * 1000 if len(waits) >= _FEWEST else None,
            unfinished_requests=unfinished_requests,
        )
