"""The fleet under its load in simulated time, and recent measurements of its clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from statistics import quantiles

from controller.simulation.batch import CompletedRequest
from controller.simulation.fleet import Fleet
from controller.simulation.workload import Request
from hack.demo.observation import ClientView

RATE_WINDOW_SECONDS = 10.0
LATENCY_WINDOW_SECONDS = 20.0
_FEWEST = 5


class RecentFigures:
    """Sliding windows over arrivals and completions, in seconds of simulated time."""

    def __init__(self) -> None:
        self._arrived: deque[tuple[float, int]] = deque([(0.0, 0)])
        self._waits: deque[tuple[float, float]] = deque()

    def update(self, now_seconds: float, *, arrived: int, finished: Iterable[CompletedRequest]) -> None:
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


_LAST_SECONDS = 300.0
"""Time in seconds for requests to finish after the end, as in a simulation."""


class Traffic:
    """Requests of all models to one fleet, in the order of their arrival."""

    def __init__(self, arrivals: Mapping[str, Iterator[Request]]) -> None:
        self.fleet = Fleet(arrivals)
        self._figures = {model_id: RecentFigures() for model_id in arrivals}
        self._measured = dict.fromkeys(arrivals, 0)
        """The number of completions that are in the figures."""

    def advance(self, now_seconds: float) -> None:
        """Advance the fleet and the measurements to a simulated time."""
        self.fleet.advance(round(now_seconds * 1e6))
        for model_id, finished in self.fleet.finished.items():
            arrived, recent = self.fleet.routers[model_id].arrived, finished[self._measured[model_id] :]
            self._figures[model_id].update(now_seconds, arrived=arrived, finished=recent)
            self._measured[model_id] = len(finished)

    def conclude(self, now_seconds: float) -> dict[str, list[CompletedRequest]]:
        """Return all completions, including those that would follow if no more requests arrived.

        The engines themselves are not changed.
        """
        self.advance(now_seconds)
        until_us = round((now_seconds + _LAST_SECONDS) * 1e6)
        return {
            model_id: self.fleet.finished[model_id] + deepcopy(router).advance(until_us)
            for model_id, router in self.fleet.routers.items()
        }

    def clients(self) -> dict[str, ClientView]:
        """Return the current measurements of each model's clients."""
        return {
            model_id: self._figures[model_id].view(unfinished_requests=router.unfinished)
            for model_id, router in self.fleet.routers.items()
        }
