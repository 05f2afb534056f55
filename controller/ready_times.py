"""How long replicas take to be ready after the decisions that add them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apiserver.kinds.identity import Key


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wait:
    """A decision whose replicas are not all ready yet."""

    replicas: int
    since_seconds: float


class ReadyTimes:
    """The decisions that added replicas to each variant, until these are ready.

    Each decision that grows is timed on its own. A later one that is larger does not restart the time of an
    earlier one; one that is smaller ends the waits for replicas that it no longer grants.
    """

    def __init__(self) -> None:
        self._granted: Mapping[Key, int] = {}
        self._waits: Mapping[Key, tuple[_Wait, ...]] = {}

    def advance(
        self, granted: Mapping[Key, int], ready: Mapping[Key, int], *, now_seconds: float
    ) -> Iterator[tuple[Key, float]]:
        """Return the variants whose decisions became ready in this cycle, each with the seconds it took.

        `granted` are the replicas that every variant should have, and `ready` those that are ready. The first
        decision on a variant that is seen is not timed: it may have been made before the controller started.
        """
        observed, waits = [], {}
        for key, replicas in granted.items():
            kept = [wait for wait in self._waits.get(key, ()) if wait.replicas <= replicas]
            observed += [(key, now_seconds - it.since_seconds) for it in kept if it.replicas <= ready[key]]
            if replicas > max(self._granted.get(key, replicas), ready[key]):
                kept.append(_Wait(replicas=replicas, since_seconds=now_seconds))
            waits[key] = tuple(wait for wait in kept if wait.replicas > ready[key])
        self._granted, self._waits = dict(granted), waits
        return iter(observed)
