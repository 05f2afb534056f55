"""Find the server with the shortest queue, then the emptiest cache, without querying all of them each time.

A server's queue changes only at times that the server knows in advance, and until then its cache can only
fill. So the last observation of a server is a lower bound: the server with the least bound is queried, and
is the answer if its current value does not exceed the bounds of all others.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.simulation.request import Completion
    from controller.simulation.server import Server

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

    def advance(self, now_us: int) -> list[Completion]:
        """Advance the servers in which something changes by then; return their completions."""
        due = []
        while self._changes and self._changes[0][0] <= now_us:
            _, name, look = heappop(self._changes)
            if self._versions.get(name) == look:
                due.append(name)
        finished: list[Completion] = []
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
            usage = self._servers[name].kv_usage_at(now_us)
            if usage == seen_usage:
                return name
            heappop(entries)
            heappush(entries, (waiting, usage, name, look))
