"""When pods were evicted in the last hour, on the controller's Lease: who leads next goes on counting.

The Lease is there anyway, only the leader writes it, and it outlives processes, nodes and pods. What is about
to be evicted is written before, so that who dies in between has counted too much and never too little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.schema.json import Json
from controller.observe.orders import PREFIX
from controller.reconcilers.lease_annotation import annotate, read_lease

ANNOTATION: Final = f"{PREFIX}evictions"
"""Moments of the last hour, such as `2026-01-01T12:00:20Z x2, 2026-01-01T12:10:20Z x1`."""

MOST_AT_ONCE: Final = 10_000
"""More evictions of one moment nobody has ever allowed."""

_TIMES: Final = " x"
_MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"


class EvictionRecord:
    """The record on one Lease."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name

    async def read(self) -> tuple[float, ...]:
        """Return a moment for each eviction.

        Raises the ClusterError of what is refused, and ValueError where somebody else wrote the annotation.
        """
        return moments_in(await read_lease(self._cluster, self._namespace, self._name))

    async def write(self, moments: Iterable[float]) -> None:
        """Put a record in the place of the last one. Raises the ClusterError of what is refused."""
        await annotate(self._cluster, self._namespace, self._name, ANNOTATION, record_of(moments))


def moments_in(lease: Json) -> tuple[float, ...]:
    """Return the moments that a Lease tells. Raises ValueError for what is no record."""
    text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    found: list[float] = []
    for entry in text.split(", ") if text else ():
        moment, _, times = entry.partition(_TIMES)
        if not (times.isdecimal() and 1 <= int(times) <= MOST_AT_ONCE):
            raise ValueError(f"{ANNOTATION}: {entry!r} must end in x1 to x{MOST_AT_ONCE}")
        found += [datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).timestamp()] * int(times)
    return tuple(found)


def record_of(moments: Iterable[float]) -> str:
    """Return the record of moments, to the second above: none is forgotten too early."""
    counts = Counter(-int(-moment // 1) for moment in moments)
    return ", ".join(
        f"{datetime.fromtimestamp(moment, UTC).strftime(_MOMENT)}{_TIMES}{times}"
        for moment, times in sorted(counts.items())
    )
