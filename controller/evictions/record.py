"""A record of the last hour's evictions on the controller's Lease, from which the next leader continues.

The Lease exists anyway, only the leader writes it, and it outlives processes, nodes and pods. Evictions are
recorded before they are made, so that a crash in between counts too many and never too few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.lease_annotation import annotate, read_lease
from apiserver.kinds.annotations import PREFIX
from apiserver.schema.json import Json

ANNOTATION: Final = f"{PREFIX}evictions"
"""Times within the last hour, such as `2026-01-01T12:00:20Z x2, 2026-01-01T12:10:20Z x1`."""

MOST_AT_ONCE: Final = 10_000
"""Maximum count for one time; a larger one cannot be genuine."""

_TIMES: Final = " x"
_MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"


class EvictionRecord:
    """The record on one Lease."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name

    async def read(self) -> tuple[float, ...]:
        """Return one time for each eviction.

        Raises ClusterError if the read is rejected, and ValueError if the annotation is malformed.
        """
        return moments_in(await read_lease(self._cluster, self._namespace, self._name))

    async def write(self, moments: Iterable[float]) -> None:
        """Replace the record. Raises ClusterError if the write is rejected."""
        await annotate(self._cluster, self._namespace, self._name, ANNOTATION, record_of(moments))


def moments_in(lease: Json) -> tuple[float, ...]:
    """Return the times in a Lease's record. Raises ValueError if it is malformed."""
    text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    found: list[float] = []
    for entry in text.split(", ") if text else ():
        moment, _, times = entry.partition(_TIMES)
        if not (times.isdecimal() and 1 <= int(times) <= MOST_AT_ONCE):
            raise ValueError(f"{ANNOTATION}: {entry!r} must end in x1 to x{MOST_AT_ONCE}")
        found += [datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).timestamp()] * int(times)
    return tuple(found)


def record_of(moments: Iterable[float]) -> str:
    """Return the record of some times, rounded up to seconds so that none expires too early."""
    counts = Counter(-int(-moment // 1) for moment in moments)
    return ", ".join(
        f"{datetime.fromtimestamp(moment, UTC).strftime(_MOMENT)}{_TIMES}{times}"
        for moment, times in sorted(counts.items())
    )
