"""Pods with accelerators that belong to no variant and whose owners allow moving them.

The owner allows it by an annotation on the pod: consent comes from the workload that is disturbed, is part of
its manifest, and is available when planning from files. Pods that could not run elsewhere as they are stay in
any case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from apiserver.kinds.annotations import PREFIX
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.disruptions import Disruptions
from controller.observe.pods import is_present, is_ready, target_of_pod
from controller.observe.scheduling import MOST_VALUES, node_affinity, placement_values, tolerations
from controller.observe.targets import TargetKey
from controller.planning.cluster import MOST_ACCELERATORS, MovablePod

MOVABLE: Final = f"{PREFIX}movable"
"""With value `true`, the pod may be evicted to make room, because it is replaced elsewhere."""

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""With value `false`, the pod must not be evicted."""

_NOT_REPLACED: Final = frozenset({"DaemonSet", "Node", "Job"})
"""Owners that recreate a pod on the same node only, or, like a Job, with limited retries and from the start.
"""

_PORTABLE: Final = frozenset({"configMap", "secret", "projected", "downwardAPI", "image"})
_CHEAP, _USUAL, _DEAR = 1, 2, 3


def movable_pods(
    pods: Sequence[Json], planned: frozenset[TargetKey], disruptions: Disruptions, *, highest_priority: int
) -> Mapping[str, tuple[MovablePod, ...]]:
    """Return the movable pods by node; `planned` are the targets that planning decides on.

    `highest_priority` is the maximum Kubernetes priority value of a movable pod.
    """
    found: dict[str, list[MovablePod]] = defaultdict(list)
    for pod in pods:
        if not _is_consenting(pod) or target_of_pod(pod) in planned:
            continue
        has_accelerators = 0 < accelerators_of(pod["spec"]) <= MOST_ACCELERATORS
        if has_accelerators and _is_portable(pod) and _priority(pod) <= highest_priority:
            found[pod["spec"]["nodeName"]].append(_record(pod, disruptions))
    return {node: tuple(listed) for node, listed in found.items()}


def lowest_priority(groups: Sequence[Sequence[Json]]) -> int:
    """Return the lowest priority value among the pods of some targets."""
    return min((_priority(pod) for pods in groups for pod in pods), default=0)


def _record(pod: Json, disruptions: Disruptions) -> MovablePod:
    budget, evictable = disruptions.of([pod])
    spec, priority = pod["spec"], _priority(pod)
    return MovablePod(
        namespace=pod["metadata"]["namespace"],
        name=pod["metadata"]["name"],
        accelerators=accelerators_of(spec),
        price_class=_CHEAP if priority < 0 else _DEAR if priority else _USUAL,
        node_selector=frozenset((spec.get("nodeSelector") or {}).items()),
        node_affinity=node_affinity(spec),
        tolerations=tolerations(spec),
        disruption_budget=budget,
        evictable=evictable,
    )


def _is_consenting(pod: Json) -> bool:
    said = pod["metadata"].get("annotations") or {}
    return said.get(MOVABLE) == "true" and said.get(SAFE_TO_EVICT) != "false"


def _is_portable(pod: Json) -> bool:
    """Return whether a pod runs, is recreated when evicted, and may start on any node with room for it."""
    spec = pod["spec"]
    owners = [item for item in pod["metadata"].get("ownerReferences") or [] if item.get("controller")]
    return bool(
        spec.get("nodeName")
        and is_present(pod)
        and is_ready(pod)
        and owners
        and owners[0]["kind"] not in _NOT_REPLACED
        and not spec.get("resourceClaims")
        and all(_is_anywhere(volume) for volume in spec.get("volumes") or [])
        and not any(_constraints(spec))
        and placement_values(spec) <= MOST_VALUES
    )


def _is_anywhere(volume: Json) -> bool:
    """Return whether a volume is the same on every node, or recreated: memory is, a disk is not."""
    if (volume.get("emptyDir") or {}).get("medium") == "Memory":
        return True
    return bool(_PORTABLE & volume.keys())


def _constraints(spec: Json) -> Iterator[bool]:
    """Yield whether the node depends on other pods, too, which is not tracked here."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        yield bool((affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution"))
    for item in spec.get("topologySpreadConstraints") or []:
        yield item.get("whenUnsatisfiable") != "ScheduleAnyway"


def _priority(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)
