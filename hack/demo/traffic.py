"""The fleet under its load, advanced by the clock, and its clients' measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy

from controller.simulation.batch import Completion
from controller.simulation.fleet import Fleet
from controller.simulation.workload import Request
from hack.demo.figures import RecentFigures
from hack.demo.observation import ClientView

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

    def concluded(self, now_seconds: float) -> dict[str, list[Completion]]:
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
