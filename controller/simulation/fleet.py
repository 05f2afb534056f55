"""The servers of all models: one that serves requests alone, or two with a role each.

In a pair, the first server computes the prompt and the first token, and the second one the rest. The KV cache
moves between them at no cost. A request whose second server leaves gets its KV cache again from the first
one, so its prompt is not computed twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

from controller.simulation.batch import CompletedRequest
from controller.simulation.profile import DECODE
from controller.simulation.router import SHORTEST_QUEUE, Router, Routing
from controller.simulation.server import Server
from controller.simulation.workload import Request


class PairedRouter:
    """One router for each role, with the methods of `Router`. Clients wait for ever after a first token."""

    def __init__(
        self, *, patience_us: int | None = None, routing: Routing = SHORTEST_QUEUE, seed: int = 0
    ) -> None:
        self.servers: dict[str, Server] = {}
        """Servers of both roles by name."""

        self._prefill = Router(patience_us=patience_us, routing=routing, seed=seed)
        self._decode = Router(routing=routing, seed=seed)
        self._waiting: dict[int, Request] = {}
        """Requests without a first token."""

        self._counted = 0
        """Abandoned requests that are no longer among them."""

        self._begun: dict[int, tuple[Request, int]] = {}
        """Requests with a first token, and its time."""

    @property
    def held(self) -> list[Request]:
        """Requests that wait for a first server of either role."""
        return [*self._prefill.held, *self._decode.held]

    @property
    def abandoned(self) -> list[Request]:
        """Requests whose clients gave up; complete after `advance`."""
        return self._prefill.abandoned

    @property
    def arrived(self) -> int:
        """Number of requests so far."""
        return self._prefill.arrived

    @property
    def refused(self) -> int:
        """Number of requests that fit no server."""
        return self._prefill.refused + self._decode.refused

    @property
    def unfinished(self) -> int:
        """Number of requests that are held, waiting or running."""
        return self._prefill.unfinished + self._decode.unfinished

    def join(self, name: str, server: Server, *, now_us: int) -> None:
        """Add a server, by the role in its profile."""
        self.servers[name] = server
        router = self._decode if server.profile.role == DECODE else self._prefill
        router.join(name, server, now_us=now_us)

    def cordon(self, name: str) -> None:
        """Send no new requests to a server."""
        self._router_of(name).cordon(name)

    def leave(self, name: str, *, now_us: int) -> None:
        """Remove a server, and retry its unfinished requests on others of its role."""
        self._router_of(name).leave(name, now_us=now_us)
        del self.servers[name]

    def submit(self, request: Request, *, now_us: int) -> None:
        """Dispatch a new request for its first token."""
        refused = self._prefill.refused
        self._prefill.submit(replace(request, output_tokens=1), now_us=now_us)
        if self._prefill.refused == refused:
            self._waiting[request.request_id] = request

    def advance(self, until_us: int) -> list[CompletedRequest]:
        """Advance all servers and return the completions since the last call, in order of time."""
        finished = []
        for first in self._prefill.advance(until_us):
            request = self._waiting.pop(first.request.request_id)
            if request.output_tokens == 1:
                finished.append(replace(first, request=request))
                continue
            refused = self._decode.refused
            rest = replace(request, output_tokens=request.output_tokens - 1)
            self._decode.submit(rest, now_us=first.finish_us)
            if self._decode.refused == refused:
                self._begun[request.request_id] = request, first.first_token_us
        for left in self._prefill.abandoned[self._counted :]:
            self._waiting.pop(left.request_id, None)
        self._counted = len(self._prefill.abandoned)
        for end in self._decode.advance(until_us):
            request, first_token_us = self._begun.pop(end.request.request_id)
            finished.append(replace(end, request=request, first_token_us=first_token_us))
        return sorted(finished, key=attrgetter("finish_us"))

    def _router_of(self, name: str) -> Router:
        return self._decode if self.servers[name].profile.role == DECODE else self._prefill


class Fleet:
    """Routers by model, fed from arrivals that are consumed as time passes.

    `arrivals` gives each model its requests in order of arrival; they may be infinite. Clients give up after
    `patience_us` without a first token; None for never. All routers have the same `routing` and `seed`. Times
    must not decrease. `pairs` are the models whose servers have roles.
    """

    def __init__(
        self,
        arrivals: Mapping[str, Iterator[Request]],
        *,
        patience_us: int | None = None,
        routing: Routing = SHORTEST_QUEUE,
        seed: int = 0,
        pairs: Collection[str] = (),
    ) -> None:
        self.routers: dict[str, Router | PairedRouter] = {
            model_id: (PairedRouter if model_id in pairs else Router)(
                patience_us=patience_us, routing=routing, seed=seed
            )
            for model_id in arrivals
        }
        self.finished: dict[str, list[CompletedRequest]] = {model_id: [] for model_id in arrivals}
        """All completions of each model, in order of time; complete after `advance`."""

        self._arrivals = arrivals
        self._upcoming = {model_id: next(stream, None) for model_id, stream in arrivals.items()}
        self._advanced_us = -1

    def join(self, name: str, server: Server, *, now_us: int) -> None:
        """Add a server to the model in its profile. Raises KeyError if that model has no arrivals."""
        self._advanced_router(server.profile.model_id, now_us).join(name, server, now_us=now_us)

    def cordon(self, name: str, *, model_id: str, now_us: int) -> None:
        """Send no new requests to a server; it continues with those that it has."""
        self._advanced_router(model_id, now_us).cordon(name)

    def leave(self, name: str, *, model_id: str, now_us: int) -> None:
        """Remove a server; its requests are retried elsewhere."""
        self._advanced_router(model_id, now_us).leave(name, now_us=now_us)

    def catch_up(self, now_us: int) -> None:
        """Advance, unless that was already done for this time."""
        if self._advanced_us != now_us:
            self.advance(now_us)

    def advance(self, until_us: int) -> None:
        """Process all arrivals and servers until a time."""
        self._advanced_us = until_us
        for model_id in self.routers:
            self._advanced_router(model_id, until_us)

    def _advanced_router(self, model_id: str, until_us: int) -> Router | PairedRouter:
        """Return the router of a model after processing its arrivals and servers until a time."""
        router, upcoming = self.routers[model_id], self._upcoming[model_id]
        while upcoming is not None and upcoming.arrival_us <= until_us:
            router.submit(upcoming, now_us=upcoming.arrival_us)
            upcoming = next(self._arrivals[model_id], None)
        self._upcoming[model_id] = upcoming
        self.finished[model_id] += router.advance(until_us)
        return router
