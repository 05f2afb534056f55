"""Conversion of objects to the shape of a release, by writes in the version of that release."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.resource import Resource
from apiserver.kinds.llmd.shapes import Shape, in_shape
from apiserver.schema.json import Json, same
from controller.commands.upgrade.accounts import account, shaped_anew, without_annotations
from controller.commands.upgrade.comparison import difference
from controller.commands.upgrade.findings import Failure
from controller.commands.upgrade.retrying import Pace, failures_of, patiently, retry
from controller.commands.upgrade.status_to_come import announces, announcing, without_announcement

_PAUSES_SECONDS: Final = (0.05,) * 39


async def reshape(
    cluster: Cluster, resource: Resource, shape: Shape, pace: Pace, *, dry_run: bool
) -> tuple[int, tuple[Failure, ...]]:
    """Write every object in a shape; return their number, and those that failed. Raises ClusterError."""
    items = [item for item in await _list(cluster, resource) if account(item, shape).is_reshaped]
    write = partial(_rehearse if dry_run else _write, cluster, resource, shape)
    return len(items), await _failures(cluster, resource, items, write, pace)


async def sweep(
    cluster: Cluster, resource: Resource, shape: Shape, pace: Pace
) -> tuple[int, tuple[Failure, ...]]:
    """Remove our annotations and nothing else; return the number of objects, and those that failed.

    Raises ClusterError.
    """
    items = [item for item in await _list(cluster, resource) if account(item, shape).is_annotated]
    write = partial(_bare, cluster, resource, shape)
    return len(items), await _failures(cluster, resource, items, write, pace)


async def forget(cluster: Cluster, resource: Resource, pace: Pace) -> tuple[int, tuple[Failure, ...]]:
    """Remove the announcements of an interrupted downgrade; return how many objects, and which failed.

    Raises ClusterError.
    """
    items = [item for item in await _list(cluster, resource) if announces(item)]
    write = partial(_forgotten, cluster, resource)
    return len(items), await _failures(cluster, resource, items, write, pace)


async def disown(
    cluster: Cluster, resource: Resource, api_version: str, pace: Pace
) -> tuple[int, tuple[Failure, ...]]:
    """Remove managedFields entries of a version that will no longer be served.

    The API server cannot read an entry of such a version, and erases all entries of the object at its next
    write. Returns the number of objects, and those that failed. Raises ClusterError.
    """
    items = [item for item in await _list(cluster, resource) if _is_owned_in(item, api_version)]
    write = partial(_disown_object, cluster, resource, api_version)
    return len(items), await _failures(cluster, resource, items, write, pace)


async def _list(cluster: Cluster, resource: Resource) -> list[Json]:
    return list((await patiently(partial(cluster.list, resource)))["items"])


async def _failures(
    cluster: Cluster,
    resource: Resource,
    items: list[Json],
    write: Callable[[Json], Awaitable[str]],
    pace: Pace,
) -> tuple[Failure, ...]:
    return await failures_of(items, partial(_try_write, cluster, resource, write), pace)


async def _try_write(
    cluster: Cluster, resource: Resource, write: Callable[[Json], Awaitable[str]], item: Json
) -> str:
    """Write one object, read again after conflicts; return why it failed, or empty."""
    metadata = item["metadata"]
    read = partial(cluster.get, resource, metadata["name"], namespace=metadata["namespace"])
    known: Json | None = item

    async def attempt() -> str:
        nonlocal known
        now: Json = known if known is not None else await patiently(read)
        known = None
        return await patiently(partial(write, now))

    try:
        return await retry(attempt, Conflict, _PAUSES_SECONDS)
    except NotFound:
        return ""  # deleted in the meantime
    except Conflict:
        return "it is changed continuously: stop its writer"
    except ClusterError as error:
        return error.message


async def _rehearse(cluster: Cluster, resource: Resource, shape: Shape, item: Json) -> str:
    wanted = shaped_anew(item, shape).value
    await cluster.replace(resource, wanted, subresource="status", dry_run=True)
    await cluster.replace(resource, announcing(wanted, item.get("status")), dry_run=True)
    return ""


async def _write(cluster: Cluster, resource: Resource, shape: Shape, item: Json) -> str:
    """Write the spec first, announcing the status that follows, so that an interrupted run can be resumed."""
    wanted = shaped_anew(item, shape).value
    if not same(wanted.get("status"), item.get("status")):
        item = await _replace(cluster, resource, announcing(wanted, item.get("status")), item)
        item = await _replace(cluster, resource, wanted, item, subresource="status")
    written = await _replace(cluster, resource, wanted, item)
    # Admission may add a default; what matters is that the object has the shape.
    found = difference(in_shape(written, shape).value, written)
    return f"{found} was changed by admission" if found else ""


async def _bare(cluster: Cluster, resource: Resource, shape: Shape, item: Json) -> str:
    made = account(item, shape)
    if made.is_reshaped:
        return "it was changed in the meantime and must be restored again: run this command again"
    if made.is_annotated:
        await _replace(cluster, resource, without_annotations(item), item)
    return ""


async def _forgotten(cluster: Cluster, resource: Resource, item: Json) -> str:
    if announces(item):
        await _replace(cluster, resource, without_announcement(item), item)
    return ""


async def _disown_object(cluster: Cluster, resource: Resource, api_version: str, item: Json) -> str:
    if _is_owned_in(item, api_version):
        entries = item["metadata"]["managedFields"]
        kept = [entry for entry in entries if entry.get("apiVersion") != api_version]
        await _replace(
            cluster, resource, item | {"metadata": item["metadata"] | {"managedFields": kept}}, item
        )
    return ""


def _is_owned_in(item: Json, api_version: str) -> bool:
    entries = item["metadata"].get("managedFields") or []
    return any(entry.get("apiVersion") == api_version for entry in entries)


async def _replace(
    cluster: Cluster, resource: Resource, wanted: Json, item: Json, *, subresource: str | None = None
) -> Json:
    version = {"resourceVersion": item["metadata"]["resourceVersion"]}
    body = wanted | {"metadata": wanted["metadata"] | version}
    return await cluster.replace(resource, body, subresource=subresource)
