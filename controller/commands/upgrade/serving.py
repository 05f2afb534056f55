"""Writes of definitions, and waiting until the API server has applied them.

A definition takes effect a moment after it was written, and not at the same time on several API servers.
Nothing may be stored in a version that one of them cannot read yet.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, Forbidden, NotFound
from apiserver.cluster.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.calls import (
    Pace,
    StoppedError,
    change_all,
    comes_true,
    get_if_present,
    resource_of,
    retry,
)
from controller.commands.upgrade.definitions import condition, served_versions

ENDPOINT_SLICES: Final = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice"
)

_PATIENCE_SECONDS: Final = 60.0
_SETTLE_SECONDS: Final = 0.5
_SETTLE_MANY_SECONDS: Final = 5.0
"""The time that several API servers may differ, in seconds; they use the same for a new definition."""
_PAUSES_SECONDS: Final = (0.1,) * 19


async def read_definition(cluster: Cluster, kind: Kind) -> Json | None:
    """Return the current definition of a kind, or None if it is not installed."""
    return await get_if_present(cluster, CUSTOM_RESOURCE_DEFINITIONS, kind.crd_name)


async def write_definition(
    cluster: Cluster, kind: Kind, change: Callable[[Json | None], Json | None], *, subresource: str = ""
) -> None:
    """Write the changed definition over the current one, or create it; read it again after other writes.

    Nothing is written if `change` returns the same or None. Raises StoppedError if the other writes never
    stop.
    """

    async def attempt() -> None:
        live = await read_definition(cluster, kind)
        wanted = change(live)
        if wanted is None or wanted == live:
            return
        if live is None:
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, wanted)
        else:
            await cluster.replace(CUSTOM_RESOURCE_DEFINITIONS, wanted, subresource=subresource or None)

    try:
        await retry(attempt, (Conflict, NotFound), _PAUSES_SECONDS)
    except (Conflict, NotFound) as error:
        raise StoppedError(f"{kind.crd_name} is changed continuously; run this command again") from error


async def disown(cluster: Cluster, kind: Kind, *, version: str, served: str, pace: Pace) -> int:
    """Remove managedFields entries of a version that will no longer be served; return from how many objects.

    The API server cannot read an entry of such a version, and erases all entries of the object at its next
    write. `served` is a version in which to write. Raises StoppedError and ClusterError.
    """
    resource, left = resource_of(kind, served), f"{kind.group}/{version}"

    def entries(item: Json) -> list[Json]:
        return [it for it in item["metadata"].get("managedFields") or [] if it.get("apiVersion") != left]

    def is_due(item: Json) -> bool:
        return len(entries(item)) < len(item["metadata"].get("managedFields") or [])

    async def write(item: Json) -> Json:
        metadata = item["metadata"] | {"managedFields": entries(item)}
        return await cluster.replace(resource, item | {"metadata": metadata})

    return await change_all(cluster, resource, is_due, write, pace)


async def until_served(cluster: Cluster, kind: Kind, versions: tuple[str, ...]) -> None:
    """Wait until exactly these versions are served. Raises StoppedError after a minute."""

    async def is_served() -> bool:
        live = await read_definition(cluster, kind)
        if live is None or condition(live, "Established") != "True" or served_versions(live) != versions:
            return False
        names = {version.name for version in kind.versions}
        return {name for name in names if await _discover(cluster, kind, name) is not None} == set(versions)

    await _until(is_served, f"{kind.crd_name} does not serve {', '.join(versions)}")
    if kind.has_conversion:
        await settle(cluster)


async def until_stored(cluster: Cluster, kind: Kind, version: str) -> None:
    """Wait until objects are stored in a version. Raises StoppedError after a minute."""

    async def is_stored() -> bool:
        resource = await _discover(cluster, kind, version)
        return resource is not None and resource.get("storageVersionHash") == storage_hash(kind, version)

    await _until(is_stored, f"{kind.crd_name} is not stored in {version}")
    await settle(cluster)


def storage_hash(kind: Kind, version: str) -> str:
    """Return the hash of a storage version, as in discovery.

    Source: `k8s.io/apiserver/pkg/endpoints/discovery`.
    """
    digest = hashlib.sha256(f"{kind.group}/{version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


async def settle(cluster: Cluster) -> None:
    """Wait for the request handlers, and other API servers, which may lag behind discovery."""
    try:
        listed = await cluster.list(
            ENDPOINT_SLICES, namespace="default", label_selector="kubernetes.io/service-name=kubernetes"
        )
        servers = sum(len(item.get("endpoints") or []) for item in listed["items"])
    except Forbidden:
        servers = 2  # unknown: assume several
    await asyncio.sleep(_SETTLE_MANY_SECONDS if servers > 1 else _SETTLE_SECONDS)


async def _discover(cluster: Cluster, kind: Kind, version: str) -> Json | None:
    try:
        document = await cluster.get_path(f"/apis/{kind.group}/{version}")
    except NotFound:
        return None
    return next((item for item in document.get("resources") or [] if item["name"] == kind.plural), None)


async def _until(holds: Callable[[], Awaitable[bool]], complaint: str) -> None:
    if not await comes_true(holds, within_seconds=_PATIENCE_SECONDS):
        raise StoppedError(f"{complaint} after {_PATIENCE_SECONDS:.0f} s; run this command again")
