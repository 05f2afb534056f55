"""Find the engine with the shortest queue, then the emptiest cache, without querying all of them each time.

An engine's queue changes only at times that the engine knows in advance, and until then its cache can only
fill. So the last observation of an engine is a lower bound: the engine with the least bound is queried, and
is the answer if its current value does not exceed the bounds of all others.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.simulation.engine import Engine
    from controller.simulation.request import Completion

_Entry = tuple[int, float, str, int]
"""Waiting requests, used share of the cache, name, and version of the observation."""

_MOST_STALE = 8
"""Entries per engine, most of them outdated, above which the heap is rebuilt."""


class Ranking:
    """Engines by name; times must not decrease."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}
        self._versions: dict[str, int] = {}
        self._entries: list[_Entry] = []
        self._changes: list[tuple[int, str, int]] = []
        self._looks = 0

    def __len__(self) -> int:
        return len(self._engines)

    def add(self, name: str, engine: Engine) -> None:
        """Add an engine, or observe it again after a submission or an advance."""
        self._engines[name] = engine
        self._looks += 1
        self._versions[name] = self._looks
        heappush(self._entries, (engine.waiting, engine.kv_usage, name, self._looks))
        change_us = engine.next_change_us
        if change_us is not None:
            heappush(self._changes, (change_us, name, self._looks))
        if len(self._entries) > _MOST_STALE * len(self._engines):
            self._entries = [entry for entry in self._entries if self._versions.get(entry[2]) == entry[3]]
            heapify(self._entries)

    def remove(self, name: str) -> None:
        """Remove an engine, if it is known."""
        self._engines.pop(name, None)
        self._versions.pop(name, None)

    def advance(self, now_us: int) -> list[Completion]:
        """Advance the engines in which something changes by then; return their completions."""
        due = []
        while self._changes and self._changes[0][0] <= now_us:
            _, name, look = heappop(self._changes)
            if self._versions.get(name) == look:
                due.append(name)
        finished: list[Completion] = []
        for name in due:
            finished += self._engines[name].change(now_us)
            self.add(name, self._engines[name])
        return finished

    def first(self, now_us: int) -> str:
        """Return the best engine now; all must have advanced. Raises IndexError without engines."""
        entries = self._entries
        while True:
            waiting, seen_usage, name, look = entries[0]
            if self._versions.get(name) != look:
                heappop(entries)
                continue
            usage = self._engines[name].kv_usage_at(now_us)
            if usage == seen_usage:
                return name
            heappop(entries)
            heappush(entries, (waiting, usage, name, look))
