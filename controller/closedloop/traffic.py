"""The requests of a run: their arrival at the servers, and their completions as clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.simulation.fleet import Fleet
from controller.simulation.routing import SHORTEST_QUEUE, Routing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.simulation.request import Completion, Request
    from controller.simulation.server import Server


class Traffic:
    """The fleet under load, and all completions by model.

    Clients give up after `patience_seconds` without a first token; None for never.
    """

    def __init__(
        self,
        requests: Mapping[str, list[Request]],
        *,
        patience_seconds: float | None = None,
        routing: Routing = SHORTEST_QUEUE,
        seed: int = 0,
    ) -> None:
        self._fleet = Fleet(
            {model_id: iter(items) for model_id, items in requests.items()},
            patience_us=None if patience_seconds is None else round(patience_seconds * 1e6),
            routing=routing,
            seed=seed,
        )
        self._routers = self._fleet.routers
        self._caught_up_seconds = -1.0
        self.finished: dict[str, list[Completion]] = {model_id: [] for model_id in requests}

    def servers(self, model_id: str) -> Mapping[str, Server]:
        """Return the servers of a model by pod."""
        return self._routers[model_id].servers

    def arrived(self, model_id: str) -> int:
        """Return the number of requests of a model that have arrived."""
        return self._routers[model_id].arrived

    def abandoned(self, model_id: str) -> Sequence[Request]:
        """Return the requests of a model whose clients gave up."""
        return self._routers[model_id].abandoned

    def held(self, model_id: str) -> int:
        """Return the number of requests that no server has."""
        return len(self._routers[model_id].held)

    def join(self, pod: str, server: Server, *, now_seconds: float) -> None:
        """Add a server."""
        self._fleet.join(pod, server, now_us=round(now_seconds * 1e6))

    def cordon(self, pod: str, model_id: str, *, now_seconds: float) -> None:
        """Send no new requests to a server."""
        self._fleet.cordon(pod, model_id=model_id, now_us=round(now_seconds * 1e6))

    def leave(self, pod: str, model_id: str, *, now_seconds: float) -> None:
        """Remove a server; its requests are retried elsewhere."""
        self._fleet.leave(pod, model_id=model_id, now_us=round(now_seconds * 1e6))

    def catch_up(self, now_seconds: float) -> None:
        """Advance, unless that was already done for this time."""
        if self._caught_up_seconds != now_seconds:
            self.advance(now_seconds)

    def advance(self, until_seconds: float) -> None:
        """Advance all servers to a time."""
        self._caught_up_seconds = until_seconds
        for model_id, finished in self._fleet.advance(round(until_seconds * 1e6)).items():
            self.finished[model_id] += finished
