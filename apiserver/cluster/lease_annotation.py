"""Annotations on a Lease, written concurrently with the elector that renews it."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from apiserver.cluster.resource import LEASES
from apiserver.schema.json import Json

_TRIES: Final = 5


async def read_lease(cluster: Cluster, namespace: str, name: str) -> Json:
    """Read a Lease. Raises ClusterError, but never NotFound, if it does not exist."""
    try:
        return await cluster.get(LEASES, name, namespace=namespace)
    except NotFound as error:
        raise ClusterError(error.message) from None  # the evictor would take NotFound for a missing pod


def with_annotation(lease: Json, annotation: str, text: str) -> Json:
    """Return a Lease with one annotation set, and all others kept."""
    metadata = lease["metadata"]
    annotations = (metadata.get("annotations") or {}) | {annotation: text}
    return lease | {"metadata": metadata | {"annotations": annotations}}


async def annotate(cluster: Cluster, namespace: str, name: str, annotation: str, text: str) -> None:
    """Set an annotation of a Lease; retry on conflicts. Raises ClusterError if a call is rejected."""
    for _ in range(_TRIES):
        lease = await read_lease(cluster, namespace, name)
        try:
            await cluster.replace(LEASES, with_annotation(lease, annotation, text))
        except Conflict:
            continue
        return
    raise Unavailable(f"lease {name} is changed continuously by other clients")
