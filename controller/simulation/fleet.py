"""All models with their loads and their engines, advanced together along one time line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.simulation.router import Router

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.simulation.engine import Engine
    from controller.simulation.request import Completion, Request


@dataclass(slots=True)
class _Load:
    """One model: its router, the arrivals still to come, and the next one."""

    router: Router
    arrivals: Iterator[Request]
    upcoming: Request | None = field(default=None)


class Fleet:
    """Routers by model, fed from arrivals that are consumed as time passes.

    `arrivals` gives each model its requests in the order of arrival; they may be endless.
    """

    def __init__(self, arrivals: Mapping[str, Iterator[Request]]) -> None:
        self._loads = {
            model_id: _Load(router=Router(), arrivals=stream, upcoming=next(stream, None))
            for model_id, stream in arrivals.items()
        }

    @property
    def routers(self) -> dict[str, Router]:
        """The router of each model."""
        return {model_id: load.router for model_id, load in self._loads.items()}

    def join(self, name: str, engine: Engine, *, now_us: int) -> None:
        """Add an engine to the model that its profile names. Raises KeyError if that model has no load."""
        self._loads[engine.profile.model_id].router.join(name, engine, now_us=now_us)

    def leave(self, name: str, *, model_id: str, now_us: int) -> int:
        """Remove an engine and return how many of its requests are retried elsewhere."""
        return self._loads[model_id].router.leave(name, now_us=now_us)

    def advance(self, until_us: int) -> dict[str, list[Completion]]:
        """Let arrivals in, each in time, compute until `until_us`, and return what finished per model."""
        return {model_id: _advance(load, until_us) for model_id, load in self._loads.items()}


def _advance(load: _Load, until_us: int) -> list[Completion]:
    finished: list[Completion] = []
    while load.upcoming is not None and load.upcoming.arrival_us <= until_us:
        request = load.upcoming
        finished += load.router.advance(request.arrival_us)
        load.router.submit(request, now_us=request.arrival_us)
        load.upcoming = next(load.arrivals, None)
    return finished + load.router.advance(until_us)
