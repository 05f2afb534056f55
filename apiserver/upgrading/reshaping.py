"""Gives objects back in the shape of a release, by writes in the version that the release knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.resource import Resource
from apiserver.kinds.llmd.shapes import Shape, Shaped, in_shape
from apiserver.schema.json import Json
from apiserver.schema.undecoded import same
from apiserver.upgrading.comparison import difference
from apiserver.upgrading.pace import Pace, each
from apiserver.upgrading.patience import patiently
from apiserver.upgrading.proving import Failure
from apiserver.upgrading.status_to_come import announcing, resumed

_TRIES: Final = 40
_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What becomes of one object: what its new shape cannot hold, and what had to be made up for it."""

    namespace: str
    name: str
    is_changed: bool
    lost: tuple[str, ...]
    made_up: tuple[str, ...]

    def as_json(self) -> Json:
        """Return the account as an entry of `objects`."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "lost": list(self.lost),
            "madeUp": list(self.made_up),
        }


def account(item: Json, shape: Shape) -> Account:
    """Return what becomes of an object in a shape."""
    shaped: Shaped = in_shape(resumed(item), shape)
    metadata = item["metadata"]
    return Account(
        namespace=metadata["namespace"],
        name=metadata["name"],
        is_changed=bool(difference(shaped.value, item)),
        lost=tuple(shaped.lost),
        made_up=tuple(shaped.made_up),
    )


async def reshape(
    cluster: Cluster, resource: Resource, shape: Shape, pace: Pace, *, dry_run: bool
) -> tuple[int, tuple[Failure, ...]]:
    """Write every object in a shape; how many were written, and which could not be. Raises ClusterError."""
    write = _rehearse if dry_run else _write
    listed = await patiently(partial(cluster.list, resource))
    items: list[Json] = [item for item in listed["items"] if account(item, shape).is_changed]

    async def one(item: Json) -> Failure | None:
        message = await _tried(cluster, resource, item, lambda now: write(cluster, resource, now, shape))
        if not message:
            return None
        metadata = item["metadata"]
        return Failure(namespace=metadata["namespace"], name=metadata["name"], message=message)

    found = await each(items, one, pace)
    return len(items), tuple(failure for failure in found if failure is not None)


async def _tried(
    cluster: Cluster, resource: Resource, item: Json, write: Callable[[Json], Awaitable[str]]
) -> str:
    """Write one object; why it could not be, or nothing. It is read anew when somebody changes it."""
    metadata = item["metadata"]
    try:
        for _ in range(_TRIES):
            try:
                return await patiently(partial(write, item))
            except Conflict:
                await asyncio.sleep(_PAUSE_SECONDS)
                read = partial(cluster.get, resource, metadata["name"], namespace=metadata["namespace"])
                item = await patiently(read)
    except NotFound:
        return ""  # gone meanwhile
    except ClusterError as error:
        return error.message
    return "it changes all the time: stop whoever writes it"


async def _rehearse(cluster: Cluster, resource: Resource, item: Json, shape: Shape) -> str:
    wanted = in_shape(resumed(item), shape).value
    await cluster.replace(resource, wanted, subresource="status", dry_run=True)
    await cluster.replace(resource, announcing(wanted, item.get("status")), dry_run=True)
    return ""


async def _write(cluster: Cluster, resource: Resource, item: Json, shape: Shape) -> str:
    """Write the spec first, announcing the status that follows; what is in between can be resumed."""
    wanted = in_shape(resumed(item), shape).value
    if not same(wanted.get("status"), item.get("status")):
        item = await _replaced(cluster, resource, announcing(wanted, item.get("status")), item)
        item = await _replaced(cluster, resource, wanted, item, subresource="status")
    written = await _replaced(cluster, resource, wanted, item)
    # Admission may add a default; what counts is that the object has the shape.
    found = difference(in_shape(written, shape).value, written)
    return f"{found} was changed on its way in" if found else ""


async def _replaced(
    cluster: Cluster, resource: Resource, wanted: Json, item: Json, *, subresource: str | None = None
) -> Json:
    version = {"resourceVersion": item["metadata"]["resourceVersion"]}
    body = wanted | {"metadata": wanted["metadata"] | version}
    return await cluster.replace(resource, body, subresource=subresource)
