"""All models with their requests and servers, advanced together on one time line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.simulation.router import Router
from controller.simulation.routing import SHORTEST_QUEUE, Routing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.simulation.request import Completion, Request
    from controller.simulation.server import Server


class Fleet:
    """Routers by model, fed from arrivals that are consumed as time passes.

    `arrivals` gives each model its requests in order of arrival; they may be infinite. Clients give up after
    `patience_us` without a first token; None for never. All routers have the same `routing` and `seed`. Times
    must not decrease.
    """

    def __init__(
        self,
        arrivals: Mapping[str, Iterator[Request]],
        *,
        patience_us: int | None = None,
        routing: Routing = SHORTEST_QUEUE,
        seed: int = 0,
    ) -> None:
        self._loads = {
            model_id: _Load(stream, Router(patience_us=patience_us, routing=routing, seed=seed))
            for model_id, stream in arrivals.items()
        }

    @property
    def routers(self) -> dict[str, Router]:
        """The router of each model."""
        return {model_id: load.router for model_id, load in self._loads.items()}

    def join(self, name: str, server: Server, *, now_us: int) -> None:
        """Add a server to the model in its profile. Raises KeyError if that model has no arrivals."""
        load = self._loads[server.profile.model_id]
        load.advance(now_us)
        load.router.join(name, server, now_us=now_us)

    def cordon(self, name: str, *, model_id: str, now_us: int) -> None:
        """Send no new requests to a server; it continues with those that it has."""
        load = self._loads[model_id]
        load.advance(now_us)
        load.router.cordon(name)

    def leave(self, name: str, *, model_id: str, now_us: int) -> None:
        """Remove a server; its requests are retried elsewhere."""
        load = self._loads[model_id]
        load.advance(now_us)
        load.router.leave(name, now_us=now_us)

    def advance(self, until_us: int) -> dict[str, list[Completion]]:
        """Process arrivals and servers until `until_us`, and return the new completions by model."""
        for load in self._loads.values():
            load.advance(until_us)
        return {model_id: load.take_finished() for model_id, load in self._loads.items()}


class _Load:
    """One model: its router, the future arrivals, and completions that were not returned yet."""

    def __init__(self, arrivals: Iterator[Request], router: Router) -> None:
        self.router = router
        self._arrivals = arrivals
        self._upcoming = next(arrivals, None)
        self._finished: list[Completion] = []

    def advance(self, until_us: int) -> None:
        while self._upcoming is not None and self._upcoming.arrival_us <= until_us:
            request = self._upcoming
            self.router.submit(request, now_us=request.arrival_us)
            self._upcoming = next(self._arrivals, None)
        self._finished += self.router.advance(until_us)

    def take_finished(self) -> list[Completion]:
        finished, self._finished = self._finished, []
        return finished
