"""Rewriting of stored objects in the storage version, and verification.

A write without changes is enough: the server encodes the object again, in the current storage version. It
goes to the status subresource, which no admission intercepts and which cannot change the spec. It is an empty
patch, which cannot overwrite concurrent writes. If the write leaves the resource version of an object
unchanged, the object is already stored correctly, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound, Unavailable
from apiserver.cluster.resource import Resource
from apiserver.schema.json import Json
from apiserver.upgrading.retrying import Pace, each, patiently, retried
from apiserver.upgrading.runs import StoppedError

_TRIES: Final = 20
_PAUSES_SECONDS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, *(2.0,) * 13)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """The number of objects, how many were written, and how many were deleted in the meantime."""

    objects: int
    written: int
    gone: int


async def rewrite(cluster: Cluster, resource: Resource, pace: Pace) -> Rewritten:
    """Store every object in the version of `resource`. Raises ClusterError."""
    listed = await patiently(partial(cluster.list, resource, metadata_only=True))
    items: list[Json] = listed["items"]

    async def one(item: Json) -> tuple[str, str | None]:
        return _version(item), await _write(cluster, resource, item)

    results = await each(items, one, pace.of("objects written"))
    gone = sum(after is None for _, after in results)
    written = sum(after is not None and before != after for before, after in results)
    return Rewritten(objects=len(items), written=written, gone=gone)


async def verify(cluster: Cluster, resource: Resource, pace: Pace) -> int:
    """Verify that another write changes no object; return the number of objects.

    Raises StoppedError for one that another client keeps writing, and ClusterError.
    """
    listed = await patiently(partial(cluster.list, resource, metadata_only=True))
    items: list[Json] = listed["items"]

    async def one(item: Json) -> None:
        before = _version(item)
        for _ in range(_TRIES):
            after = await _write(cluster, resource, item)
            if after in {None, before}:
                return
            before = str(after)
        name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        raise StoppedError(f"{name} is changed continuously: stop its writer, and run this command again")

    await each(items, one, pace.of("objects verified"))
    return len(items)


async def _write(cluster: Cluster, resource: Resource, item: Json) -> str | None:
    """Write an object unchanged; return its new resource version, or None if it was deleted."""
    metadata = item["metadata"]
    write = partial(
        cluster.patch_json,
        resource,
        metadata["name"],
        [],
        namespace=metadata["namespace"],
        subresource="status",
    )
    try:
        written = await retried(write, (Conflict, Unavailable), _PAUSES_SECONDS)
    except NotFound:
        return None
    return _version(written)


def _version(item: Json) -> str:
    return str(item["metadata"]["resourceVersion"])
