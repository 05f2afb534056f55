"""The fleet under its load, moved on by the clock, and what its clients see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy

from controller.simulation.fleet import Fleet
from controller.simulation.request import Completion, Request
from hack.demo.figures import RecentFigures
from hack.demo.observation import ClientView

_LAST_SECONDS = 300.0
"""How long requests may still finish after the end, as in a simulation."""


class Traffic:
    """Requests of all models into one fleet, in the order of their arrival."""

    def __init__(self, arrivals: Mapping[str, Iterator[Request]]) -> None:
        self.fleet = Fleet(arrivals)
        self._figures = {model_id: RecentFigures() for model_id in arrivals}
        self._finished: dict[str, list[Completion]] = {model_id: [] for model_id in arrivals}

    def advance(self, now_seconds: float) -> None:
        """Bring the fleet and the figures to this moment of the simulated time line."""
        for model_id, finished in self.fleet.advance(round(now_seconds * 1e6)).items():
            arrived = self.fleet.routers[model_id].arrived
            self._figures[model_id].update(now_seconds, arrived=arrived, finished=finished)
            self._finished[model_id] += finished

    def concluded(self, now_seconds: float) -> dict[str, list[Completion]]:
        """Return all that was finished, and what the engines would still finish if nothing more came.

        The engines themselves are left as they are.
        """
        self.advance(now_seconds)
        until_us = round((now_seconds + _LAST_SECONDS) * 1e6)
        return {
            model_id: self._finished[model_id] + deepcopy(router).advance(until_us)
            for model_id, router in self.fleet.routers.items()
        }

    def clients(self) -> dict[str, ClientView]:
        """Return what the clients of each model see now."""
        return {
            model_id: self._figures[model_id].view(unfinished_requests=router.unfinished)
            for model_id, router in self.fleet.routers.items()
        }
