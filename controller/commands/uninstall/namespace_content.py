"""Objects of others in our namespace, which must not be deleted with it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound, Unavailable
from apiserver.cluster.resource import Resource
from apiserver.schema.json import Json
from controller.commands.uninstall.installed import has_our_name
from controller.commands.upgrade.ownership import is_ours
from controller.commands.upgrade.retrying import patiently

_DERIVED: Final = frozenset({"events", "endpoints", "endpointslices"})
"""Collections that the cluster derives from other objects."""
_MEASURED: Final = "metrics.k8s.io"
"""Suffix of the API groups that contain measurements."""
_OF_EVERY_NAMESPACE: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})


async def strangers(cluster: Cluster, namespace: str, ours: Collection[str]) -> tuple[str, ...]:
    """Return the objects in a namespace besides `ours`, as `Kind name`, without those that have an owner."""
    silent: list[str] = []
    resources = await _resources(cluster, silent)
    listed = await asyncio.gather(*(_list(cluster, resource, namespace) for resource in resources))
    found = {
        f"{resource.kind} {item['metadata']['name']}"
        for resource, items in zip(resources, listed, strict=True)
        for item in items
        if _is_of_somebody(resource, item)
    }
    return tuple(sorted((found - {*ours}) | {*silent}))


def _is_of_somebody(resource: Resource, item: Json) -> bool:
    metadata = item["metadata"]
    is_removed = is_ours(item) and has_our_name(resource, metadata["name"])
    goes = metadata.get("deletionTimestamp") or metadata.get("ownerReferences")
    return not (is_removed or goes or (resource.kind, metadata["name"]) in _OF_EVERY_NAMESPACE)


async def _resources(cluster: Cluster, silent: list[str]) -> list[Resource]:
    """Return all namespaced collections that can be listed, in the preferred version of each group."""
    groups = (await cluster.get_path("/apis")).get("groups") or []
    versions = [("", "v1"), *((group["name"], group["preferredVersion"]["version"]) for group in groups)]
    described = await asyncio.gather(*(_collections(cluster, silent, *version) for version in versions))
    return [resource for resources in described for resource in resources]


async def _collections(cluster: Cluster, silent: list[str], group: str, version: str) -> list[Resource]:
    """Return the collections of one version; if its server is unavailable, record that in `silent`."""
    if group.endswith(_MEASURED):
        return []
    try:
        found = await cluster.get_path(f"/apis/{group}/{version}" if group else f"/api/{version}")
    except NotFound:
        return []
    except Unavailable:
        silent.append(f"objects of {group}/{version}, which does not respond")
        return []
    return [
        Resource(group=group, version=version, plural=item["name"], kind=item["kind"])
        for item in found.get("resources") or []
        if item["namespaced"] and "list" in item["verbs"] and item["name"] not in _DERIVED
    ]


async def _list(cluster: Cluster, resource: Resource, namespace: str) -> list[Json]:
    try:
        read = partial(cluster.list, resource, namespace=namespace, metadata_only=True)
        return list((await patiently(read))["items"])
    except NotFound:
        return []  # its definition was deleted meanwhile
