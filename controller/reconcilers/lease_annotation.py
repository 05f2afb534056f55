"""Writes annotations of a Lease, which outlives processes, beside the elector that renews it all the time."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from apiserver.cluster.resource import LEASES
from apiserver.schema.json import Json

_TRIES: Final = 5


async def read_lease(cluster: Cluster, namespace: str, name: str) -> Json:
    """Read a Lease. Raises ClusterError, and never NotFound, where it is not there."""
    try:
        return await cluster.get(LEASES, name, namespace=namespace)
    except NotFound as error:
        raise ClusterError(error.message) from None  # no pod is gone, as it would seem to who evicts


def annotated(lease: Json, annotation: str, text: str) -> Json:
    """Return a Lease with what an annotation says, beside all others."""
    metadata = lease["metadata"]
    annotations = (metadata.get("annotations") or {}) | {annotation: text}
    return lease | {"metadata": metadata | {"annotations": annotations}}


async def annotate(cluster: Cluster, namespace: str, name: str, annotation: str, text: str) -> None:
    """Put a text in the place of what an annotation says. Raises the ClusterError of what is refused."""
    for _ in range(_TRIES):
        lease = await read_lease(cluster, namespace, name)
        try:
            await cluster.replace(LEASES, annotated(lease, annotation, text))
        except Conflict:
            continue
        return
    raise Unavailable(f"lease {name} is changed continuously by other clients")
