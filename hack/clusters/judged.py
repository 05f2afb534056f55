"""Evaluation of a scheduler's result: processed pods, pods on forbidden nodes, and overcommitted nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of
from controller.observe.pods import target_of_pod
from controller.planning.inventory import admits
from hack.clusters.planned import Planned

_UNSCHEDULABLE: Final = "Unschedulable"


def is_settled(pod: Json) -> bool:
    """Tell whether the scheduler has processed a pod: it is bound, or known to be unschedulable."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return bool(pod["spec"].get("nodeName")) or any(
        item["type"] == "PodScheduled" and item.get("reason") == _UNSCHEDULABLE for item in conditions
    )


def offences(planned: Planned, pods: Sequence[Json]) -> Iterator[str]:
    """Yield violations: pods on nodes that the plan does not admit, and overcommitted nodes."""
    nodes = {node.name: node for node in planned.snapshot.nodes}
    variants = {variant.name: variant for variant in planned.snapshot.variants}
    before = {replica.name for variant in planned.snapshot.variants for replica in variant.replicas}
    held: Counter[str] = Counter()
    for pod in pods:
        name, host, owner = pod["metadata"]["name"], pod["spec"].get("nodeName"), target_of_pod(pod)
        held[host] += accelerators_of(pod["spec"])
        if host and owner and name not in before and not admits(nodes[host], variants[owner.name]):
            yield f"{name} is bound to {host}, which {owner.name} may not use"
    for node in planned.cluster.nodes:
        name, room = node["metadata"]["name"], accelerators_in(node["status"]["allocatable"])
        if held[name] > room:
            yield f"{name} has {room} accelerators and {held[name]} in use"
