"""Waiting until the API server has applied a change of a definition.

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
from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.definitions import condition, served_versions
from controller.commands.upgrade.gather import read_definition
from controller.commands.upgrade.resources import ENDPOINT_SLICES
from controller.commands.upgrade.retrying import comes_true
from controller.commands.upgrade.runs import StoppedError

_PATIENCE_SECONDS: Final = 60.0
_SETTLE_SECONDS: Final = 0.5
_SETTLE_MANY_SECONDS: Final = 5.0
"""The time that several API servers may differ, in seconds; they use the same for a new definition."""


async def until_served(cluster: Cluster, kind: Kind, versions: tuple[str, ...]) -> None:
    """Wait until exactly these versions are served. Raises StoppedError after a minute."""

    async def is_served() -> bool:
        live = await read_definition(cluster, kind)
        if live is None or condition(live, "Established") != "True" or served_versions(live) != versions:
            return False
        names = {version.name for version in kind.versions}
        found = {name for name in names if await _discover(cluster, kind, name) is not None}
        return found == set(versions)

    await _until(is_served, f"{kind.crd_name} does not serve {', '.join(versions)}")
    if kind.has_conversion:
        await settle(cluster)


async def until_stored(cluster: Cluster, kind: Kind, version: str) -> None:
    """Wait until objects are stored in a version. Raises StoppedError after a minute."""

    async def is_stored() -> bool:
        found = await _discover(cluster, kind, version)
        return found is not None and found.get("storageVersionHash") == storage_hash(kind, version)

    await _until(is_stored, f"{kind.crd_name} is not stored in {version}")
    await settle(cluster)


def storage_hash(kind: Kind, version: str) -> str:
    """Return the hash of a storage version, as in discovery.

    Source: `k8s.io/apiserver/pkg/endpoints/discovery`.
    """
    digest = hashlib.sha256(f"{kind.group}/{version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


async def _discover(cluster: Cluster, kind: Kind, version: str) -> Json | None:
    try:
        found = await cluster.get_path(f"/apis/{kind.group}/{version}")
    except NotFound:
        return None
    return next((item for item in found.get("resources") or [] if item["name"] == kind.plural), None)


async def _until(holds: Callable[[], Awaitable[bool]], complaint: str) -> None:
    if not await comes_true(holds, within_seconds=_PATIENCE_SECONDS):
        raise StoppedError(f"{complaint} after {_PATIENCE_SECONDS:.0f} s; run this command again")


async def settle(cluster: Cluster) -> None:
    """Wait for the request handlers, and other API servers, which may lag behind discovery."""
    try:
        found = await cluster.list(
            ENDPOINT_SLICES, namespace="default", label_selector="kubernetes.io/service-name=kubernetes"
        )
        servers = sum(len(item.get("endpoints") or []) for item in found["items"])
    except Forbidden:
        servers = 2  # unknown: assume several
    await asyncio.sleep(_SETTLE_MANY_SECONDS if servers > 1 else _SETTLE_SECONDS)
