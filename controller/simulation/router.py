"""The servers of one model, and how requests are distributed, as by an endpoint picker in a gateway.

The server with the shortest queue, then the emptiest cache, is found without querying all of them: a server's
queue changes only at times that the server knows in advance, and until then its cache can only fill. So the
last observation of a server is a lower bound: the server with the least bound is queried, and is the answer
if its current value does not exceed the bounds of all others.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Literal

from controller.simulation.batch import CompletedRequest
from controller.simulation.server import Server
from controller.simulation.workload import Request

RoutingPolicy = Literal["shortest-queue", "random", "round-robin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Routing:
    """The policy of a router.

    - shortest-queue: the shortest queue, then the emptiest KV cache, then by name. Queues and caches are
      looked at once per `stale_seconds`, and remembered in between; 0 for every request.
    - random: any server, with equal chances.
    - round-robin: one after the other, by name.

    Raises ValueError for a number of seconds with another policy.
    """

    policy: RoutingPolicy = "shortest-queue"
    stale_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.stale_seconds and self.policy != "shortest-queue":
            raise ValueError("stale_seconds requires the policy shortest-queue: the others use no queues")


SHORTEST_QUEUE = Routing()
"""A router that always knows the queues."""

_Entry = tuple[int, float, str, int]
"""Waiting requests, used share of the cache, name, and version of the observation."""

_MOST_STALE = 8
"""Entries per server, most of them outdated, above which the heap is rebuilt."""


class Ranking:
    """Servers by name; times must not decrease."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self._versions: dict[str, int] = {}
        self._entries: list[_Entry] = []
        self._changes: list[tuple[int, str, int]] = []
        self._looks = 0

    def __len__(self) -> int:
        return len(self._servers)

    def add(self, name: str, server: Server) -> None:
        """Add a server, or observe it again after a submission or an advance."""
        self._servers[name] = server
        self._looks += 1
        self._versions[name] = self._looks
        heappush(self._entries, (server.waiting, server.kv_usage, name, self._looks))
        change_us = server.next_change_us
        if change_us is not None:
            heappush(self._changes, (change_us, name, self._looks))
        if len(self._entries) > _MOST_STALE * len(self._servers):
            self._entries = [entry for entry in self._entries if self._versions.get(entry[2]) == entry[3]]
            heapify(self._entries)

    def remove(self, name: str) -> None:
        """Remove a server, if it is known."""
        self._servers.pop(name, None)
        self._versions.pop(name, None)

    def advance(self, now_us: int) -> list[CompletedRequest]:
        """Advance the servers in which something changes by then; return their completions."""
        due = []
        while self._changes and self._changes[0][0] <= now_us:
            _, name, look = heappop(self._changes)
            if self._versions.get(name) == look:
                due.append(name)
        finished: list[CompletedRequest] = []
        for name in due:
            finished += self._servers[name].change(now_us)
            self.add(name, self._servers[name])
        return finished

    def first(self, now_us: int) -> str:
        """Return the best server now; all must have advanced. Raises IndexError without servers."""
        entries = self._entries
        while True:
            waiting, seen_usage, name, look = entries[0]
            if self._versions.get(name) != look:
                heappop(entries)
                continue
            # Its queue is current, because `advance` has observed all that changed. Its cache can only have
            # filled: if it has not, no other server has less; if it has, it is compared again.
            usage = self._servers[name].kv_usage_at(now_us)
            if usage == seen_usage:
                return name
            heappop(entries)
            heappush(entries, (waiting, usage, name, look))


class Router:
    """The servers of one model by name, and the requests that no server has yet.

    `routing` chooses the server of a request, and `seed` determines its random choices. Without a server,
    requests are held and keep waiting; a request that fits no server's KV cache is refused. A client gives up
    `patience_us` after its request arrived, unless it has a first token by then; None for never. Servers
    advance lazily; `advance` brings all of them to one time. Times must not decrease.
    """

    def __init__(
        self, *, patience_us: int | None = None, routing: Routing = SHORTEST_QUEUE, seed: int = 0
    ) -> None:
        self._patience_us = patience_us
        self._routing = routing
        self._chance = random.Random(seed)  # noqa: S311 (not used for security)
        self._turns = 0
        self._looked_us: int | None = None
        self._remembered: dict[str, tuple[int, float]] = {}
        self.servers: dict[str, Server] = {}
        self.held: deque[Request] = deque()
        self._leaving: set[str] = set()
        self._ranking = Ranking()
        self._always_fitting_tokens = 0
        self._first_tokens: dict[int, int] = {}
        self._finished: list[CompletedRequest] = []
        self.abandoned: list[Request] = []
        """Requests whose clients gave up; complete after `advance`."""

        self.arrived = 0
        self.refused = 0

    @property
    def unfinished(self) -> int:
        """Number of requests that are held, waiting or running."""
        return len(self.held) + sum(server.waiting + server.running for server in self.servers.values())

    def join(self, name: str, server: Server, *, now_us: int) -> None:
        """Add a server that has advanced to `now_us`; held requests are dispatched at once."""
        self.servers[name] = server
        self._ranking.add(name, server)
        self._size_up()
        held, self.held = self.held, deque()
        for request in held:
            self._dispatch(request, now_us=now_us)

    def cordon(self, name: str) -> None:
        """Send no new requests to a server, which continues until it leaves."""
        self._leaving.add(name)
        self._ranking.remove(name)
        self._size_up()

    def leave(self, name: str, *, now_us: int) -> None:
        """Remove a server, and retry its unfinished requests elsewhere. Raises KeyError."""
        server = self.servers.pop(name)
        self._finished += server.advance(now_us)
        self.abandoned += server.pop_abandoned()
        self._leaving.discard(name)
        self._ranking.remove(name)
        self._size_up()
        for unfinished in server.drain():
            if unfinished.first_token_us is not None:
                self._first_tokens.setdefault(unfinished.request.request_id, unfinished.first_token_us)
            self._dispatch(unfinished.request, now_us=now_us)

    def submit(self, request: Request, *, now_us: int) -> None:
        """Dispatch a new request."""
        self.arrived += 1
        self._dispatch(request, now_us=now_us)

    def advance(self, until_us: int) -> list[CompletedRequest]:
        """Advance all servers and return the completions since the last call, in order of time."""
        for name, server in self.servers.items():
            self._finished += server.advance(until_us)
            self.abandoned += server.pop_abandoned()
            if name not in self._leaving:
                self._ranking.add(name, server)
        self._abandon_held(until_us)
        finished = sorted(map(self._client_view, self._finished), key=attrgetter("finish_us"))
        self._finished.clear()
        return finished

    def _client_view(self, done: CompletedRequest) -> CompletedRequest:
        """Return the completion as its client saw it: the first token may be from another server."""
        first_token_us = self._first_tokens.pop(done.request.request_id, None)
        return done if first_token_us is None else replace(done, first_token_us=first_token_us)

    def _size_up(self) -> None:
        staying = (server for name, server in self.servers.items() if name not in self._leaving)
        self._always_fitting_tokens = min((server.profile.request_tokens for server in staying), default=0)

    def _patience_end_us(self, request: Request) -> int | None:
        """Return when the client gives up; None for never, such as after its first token."""
        if self._patience_us is None or request.request_id in self._first_tokens:
            return None
        return request.arrival_us + self._patience_us

    def _abandon_held(self, now_us: int) -> None:
        held, self.held = self.held, deque()
        for request in held:
            end_us = self._patience_end_us(request)
            (self.held if end_us is None or end_us > now_us else self.abandoned).append(request)

    def _dispatch(self, request: Request, *, now_us: int) -> None:
        patience_end_us = self._patience_end_us(request)
        if patience_end_us is not None and patience_end_us <= now_us:
            self.abandoned.append(request)
            return
        if not len(self._ranking):
            self.held.append(request)
            return
        name = self._choose(request, now_us)
        if name is None:
            self.refused += 1
            return
        server = self.servers[name]
        self._finished += server.advance(now_us)
        server.submit(request, now_us=now_us, patience_end_us=patience_end_us)
        if self._routing == SHORTEST_QUEUE:
            self._ranking.add(name, server)

    def _choose(self, request: Request, now_us: int) -> str | None:
        """Return the server that gets the request, or None if it fits no KV cache."""
        routing = self._routing
        if routing == SHORTEST_QUEUE:
            self._finished += self._ranking.advance(now_us)
            tokens = request.prompt_tokens + request.output_tokens
            # The ranking does not know which caches can hold a request: it decides where all of them can.
            if tokens <= self._always_fitting_tokens:
                return self._ranking.first(now_us)
        names = sorted(self._possible_servers(request))
        if not names:
            return None
        if routing.policy == "random":
            return self._chance.choice(names)
        if routing.policy == "round-robin":
            self._turns += 1
            return names[self._turns % len(names)]
        if routing.stale_seconds:
            self._look(now_us)
            return min(names, key=lambda name: self._remembered.get(name, (0, 0.0)))
        return min(names, key=lambda name: self._load(name, now_us))

    def _possible_servers(self, request: Request) -> Iterator[str]:
        """Yield the servers that get requests and can hold this one."""
        for name, server in self.servers.items():
            if name not in self._leaving and server.profile.fits(
                prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens
            ):
                yield name

    def _load(self, name: str, now_us: int) -> tuple[int, float]:
        server = self.servers[name]
        return server.waiting, server.kv_usage_at(now_us)

    def _look(self, now_us: int) -> None:
        """Remember the loads of all servers, unless they were looked at a short time ago.

        A server that joins in between counts as empty.
        """
        stale_us = self._routing.stale_seconds * 1e6
        if self._looked_us is None or now_us - self._looked_us >= stale_us:
            self._looked_us = now_us
            for server in self.servers.values():
                self._finished += server.change(now_us)
            self._remembered = {name: self._load(name, now_us) for name in self.servers}
