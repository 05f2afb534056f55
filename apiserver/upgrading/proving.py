"""Proves, before anything is stored in a new version, that every stored object gets there and back.

Each object is read in both versions, the one reading is converted here and held against the other, and spec
and status are written in both by dry run: through admission, through the conversion webhook, as if meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.upgrading.comparison import difference
from apiserver.upgrading.pace import Pace, each
from apiserver.upgrading.patience import patiently
from apiserver.upgrading.resources import resource_of

_TRIES: Final = 40
_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """An object that cannot be taken along, and why."""

    namespace: str
    name: str
    message: str

    def as_json(self) -> Json:
        """Return the failure as an entry of `failures`."""
        return {"namespace": self.namespace, "name": self.name, "message": self.message}


async def prove(cluster: Cluster, kind: Kind, pace: Pace) -> tuple[int, tuple[Failure, ...]]:
    """Return how many objects there are, and every one that fails. Raises ClusterError when none is read."""
    readings = [
        await patiently(partial(cluster.list, resource_of(kind, version.name))) for version in kind.versions
    ]
    items: list[Json] = readings[0]["items"]

    async def one(item: Json) -> Failure | None:
        metadata = item["metadata"]
        message = await _tried(cluster, kind, metadata)
        if not message:
            return None
        return Failure(namespace=metadata["namespace"], name=metadata["name"], message=message)

    found = await each(items, one, pace)
    return len(items), tuple(failure for failure in found if failure is not None)


def there_and_back(readings: list[Json]) -> str:
    """Return what is wrong with the readings of one object in all its versions; empty when nothing is."""
    for one in readings:
        for other in readings:
            here, there = one["apiVersion"], other["apiVersion"]
            if found := difference(convert(convert(one, there), here), one):
                return f"{found} is lost on the way from {here} to {there} and back"
            if found := difference(convert(other, here), one):
                return f"{found} differs between {here} and {there}"
    return ""


async def _tried(cluster: Cluster, kind: Kind, metadata: Json) -> str:
    """Return why one object fails; empty when it does not."""

    async def read(version: str) -> Json:
        return await cluster.get(
            resource_of(kind, version), metadata["name"], namespace=metadata["namespace"]
        )

    async def compared() -> str:
        readings = [await read(version.name) for version in kind.versions]
        if len({reading["metadata"]["resourceVersion"] for reading in readings}) > 1:
            raise Conflict("somebody wrote between two readings")
        return there_and_back(readings)

    async def written(version: str, subresource: str | None) -> str:
        reading = await read(version)
        answer = await cluster.replace(
            resource_of(kind, version), reading, subresource=subresource, dry_run=True
        )
        # Admission may complete a spec, which is no matter of conversion; it never sees a status.
        found = difference(answer, reading) if subresource else ""
        return f"{found} comes back changed from a write in {version}" if found else ""

    try:
        found = await _undisturbed(compared)
        for version in kind.versions:
            for subresource in (None, "status"):
                found = found or await _undisturbed(partial(written, version.name, subresource))
    except NotFound:
        return ""  # gone meanwhile
    except Conflict:
        return "it changes all the time: stop whoever writes it"
    except ClusterError as error:
        return error.message
    return found


async def _undisturbed(attempt: Callable[[], Awaitable[str]]) -> str:
    """Try until nobody writes in between; raises the last Conflict when somebody always does."""
    for _ in range(_TRIES):
        try:
            return await patiently(attempt)
        except Conflict:
            await asyncio.sleep(_PAUSE_SECONDS)
    return await patiently(attempt)
