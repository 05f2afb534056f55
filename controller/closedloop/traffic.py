"""The requests of a run: into the engines in time, and out again with what their clients saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.simulation.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.simulation.engine import Engine
    from controller.simulation.request import Completion, Request


class Traffic:
    """A fleet under load by model, and everything that it finished."""

    def __init__(self, requests: Mapping[str, list[Request]]) -> None:
        self._fleet = Fleet({model_id: iter(items) for model_id, items in requests.items()})
        self._routers = self._fleet.routers
        self._caught_up_seconds = -1.0
        self.finished: dict[str, list[Completion]] = {model_id: [] for model_id in requests}

    def engines(self, model_id: str) -> Mapping[str, Engine]:
        """Return the engines of a model by pod."""
        return self._routers[model_id].engines

    def arrived(self, model_id: str) -> int:
        """Return how many requests of a model have arrived."""
        return self._routers[model_id].arrived

    def held(self, model_id: str) -> int:
        """Return how many requests no engine has."""
        return len(self._routers[model_id].held)

    def join(self, pod: str, engine: Engine, *, now_seconds: float) -> None:
        """Let an engine take requests."""
        self._fleet.join(pod, engine, now_us=round(now_seconds * 1e6))

    def cordon(self, pod: str, model_id: str, *, now_seconds: float) -> None:
        """Send an engine nothing new."""
        self._fleet.cordon(pod, model_id=model_id, now_us=round(now_seconds * 1e6))

    def leave(self, pod: str, model_id: str, *, now_seconds: float) -> None:
        """Take an engine away; what it has is tried again elsewhere."""
        self._fleet.leave(pod, model_id=model_id, now_us=round(now_seconds * 1e6))

    def catch_up(self, now_seconds: float) -> None:
        """Advance, unless that was done for this very moment."""
        if self._caught_up_seconds != now_seconds:
            self.advance(now_seconds)

    def advance(self, until_seconds: float) -> None:
        """Bring all engines to a moment."""
        self._caught_up_seconds = until_seconds
        for model_id, finished in self._fleet.advance(round(until_seconds * 1e6)).items():
            self.finished[model_id] += finished
