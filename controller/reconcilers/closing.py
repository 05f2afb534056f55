"""Keeps new pods off nodes while pods are moved from them, by a taint of our own.

Without it the scheduler may put what is made anew right back to where it was evicted from.
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
    """Keep new pods off a node. Raises the ClusterError of what is refused."""
    await _write(cluster, name, [_TAINT])


async def reopen(cluster: Cluster, name: str) -> None:
    """Take our taint off a node. Raises the ClusterError of what is refused."""
    await _write(cluster, name, [])


async def _write(cluster: Cluster, name: str, ours: Sequence[Json]) -> None:
    """Write the node's taints with ours; who writes at the same time wins, and it is tried anew."""
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
