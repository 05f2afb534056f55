"""The fleet under its load, moved on by the clock, and what its clients see."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from controller.simulation.fleet import Fleet
from controller.simulation.replay import requests
from hack.demo.figures import RecentFigures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.simulation.replay import Phase
    from hack.demo.observation import ClientView


class Traffic:
    """Requests of all models into one fleet; the last phase of each load repeats without end."""

    def __init__(self, load: Mapping[str, Sequence[Phase]]) -> None:
        self.fleet = Fleet(
            {
                model_id: requests(chain(phases, repeat(phases[-1])), start_us=0)
                for model_id, phases in load.items()
            }
        )
        self._figures = {model_id: RecentFigures() for model_id in load}

    def advance(self, now_seconds: float) -> None:
        """Bring the fleet and the figures to this moment of the simulated time line."""
        for model_id, finished in self.fleet.advance(round(now_seconds * 1e6)).items():
            arrived = self.fleet.routers[model_id].arrived
            self._figures[model_id].update(now_seconds, arrived=arrived, finished=finished)

    def clients(self) -> dict[str, ClientView]:
        """Return what the clients of each model see now."""
        return {
            model_id: self._figures[model_id].view(unfinished_requests=router.unfinished)
            for model_id, router in self.fleet.routers.items()
        }
