"""A taint that keeps new pods off nodes while pods are moved from them.

Without it the scheduler might place a recreated pod back on the node that it was evicted from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict
from apiserver.cluster.resource import NODES
from apiserver.schema.json import Json
from controller.observe.scheduling import MOVING

_TRIES: Final = 3
_TAINT: Final[Json] = {"key": MOVING, "effect": "NoSchedule"}


def is_closed(node: Json) -> bool:
    """Tell whether a node has our taint."""
    return any(taint["key"] == MOVING for taint in _taints(node))


async def close(cluster: Cluster, name: str) -> None:
    """Add our taint to a node. Raises ClusterError if a call is rejected."""
    await _write(cluster, name, [_TAINT])


async def reopen(cluster: Cluster, name: str) -> None:
    """Remove our taint from a node. Raises ClusterError if a call is rejected."""
    await _write(cluster, name, [])


async def _write(cluster: Cluster, name: str, ours: Sequence[Json]) -> None:
    """Set our taints on a node and keep all others; retry if the node changed meanwhile."""
    for tries_left in reversed(range(_TRIES)):
        node = await cluster.get(NODES, name)
        others = [taint for taint in _taints(node) if taint["key"] != MOVING]
        if is_closed(node) == bool(ours):
            return
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            await cluster.patch_merge(
                NODES, name, {"metadata": version, "spec": {"taints": [*others, *ours]}}
            )
        except Conflict:
            if not tries_left:
                raise
        else:
            return


def _taints(node: Json) -> Sequence[Json]:
    return (node.get("spec") or {}).get("taints") or []
