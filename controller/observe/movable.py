"""Pods of other workloads that may be evicted: those whose owners allow it, within disruption budgets.

The owner allows it by an annotation on the pod: consent comes from the workload that is disturbed, is part of
its manifest, and is available when planning from files. Pods that could not run elsewhere as they are stay in
any case. A PodDisruptionBudget says how many of the replicas that it selects may be evicted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Final

from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.core.selecting import selects
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.pods import group_of, is_present, is_ready, target_of_pod
from controller.observe.scheduling import MOST_VALUES, node_affinity, placement_values, tolerations
from controller.observe.targets import TargetKey
from controller.planning.cluster import MOST_ACCELERATORS, MovablePod
from controller.planning.ranges import MAX_REPLICAS

MOVABLE: Final = f"{PREFIX}movable"
"""With value `true`, the pod may be evicted to make room, because it is replaced elsewhere."""

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""With value `false`, the pod must not be evicted."""

_NOT_REPLACED: Final = frozenset({"DaemonSet", "Node", "Job"})
"""Owners that recreate a pod on the same node only, or, like a Job, with limited retries and from the start.
"""

_PORTABLE: Final = frozenset({"configMap", "secret", "projected", "downwardAPI", "image"})
"""Types of volumes whose content does not depend on the node."""
_CHEAP, _USUAL, _DEAR = 1, 2, 3
"""Price classes of evictions, by a pod's Kubernetes priority: below 0, 0, above 0."""


def movable_pods(
    pods: Sequence[Json], planned: frozenset[TargetKey], disruptions: Disruptions, *, highest_priority: int
) -> Mapping[str, tuple[MovablePod, ...]]:
    """Return the movable pods by node; `planned` are the targets that planning decides on.

    `highest_priority` is the maximum Kubernetes priority value of a movable pod.
    """
    by_node: dict[str, list[MovablePod]] = defaultdict(list)
    for pod in pods:
        if not _is_consenting(pod) or target_of_pod(pod) in planned:
            continue
        has_accelerators = 0 < accelerators_of(pod["spec"]) <= MOST_ACCELERATORS
        if has_accelerators and _is_portable(pod) and _priority(pod) <= highest_priority:
            by_node[pod["spec"]["nodeName"]].append(_record(pod, disruptions))
    return {node: tuple(listed) for node, listed in by_node.items()}


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
    own = pod["metadata"].get("annotations") or {}
    return own.get(MOVABLE) == "true" and own.get(SAFE_TO_EVICT) != "false"


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


class Disruptions:
    """All PodDisruptionBudgets, to be looked up by pods."""

    def __init__(self, budgets: Sequence[Json]) -> None:
        self._at_home: dict[str, list[Json]] = defaultdict(list)
        for budget in budgets:
            self._at_home[budget["metadata"]["namespace"]].append(budget)

    def of(self, pods: Sequence[Json]) -> tuple[str, int | None]:
        """Return the budget of some pods and the replicas that it allows to evict, one after the other.

        An empty name and None without a budget. 0 if a pod has several budgets, because the API server then
        rejects its eviction, or if not all replicas have the same budget. It may select only some pods of
        each group, such as the leaders. The eviction of one pod usually ends all of its group.
        """
        if not self._at_home:
            return "", None
        replicas: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in pods:
            names = self.names(pod)
            if len(names) > 1:
                return "", 0
            replicas[group_of(pod)].update(names)
        budgets = {frozenset(counts) for counts in replicas.values()} or {frozenset()}
        names = [*budgets.pop()]
        if budgets or len(names) > 1:
            return "", 0
        if not names:
            return "", None
        namespace = pods[0]["metadata"]["namespace"]
        budget = next(item for item in self._at_home[namespace] if item["metadata"]["name"] == names[0])
        # The other pods of a group end with the first, and count as disrupted. One allowed eviction is enough
        # to begin with a group, so the number is rounded up.
        pods_each = max(counts[names[0]] for counts in replicas.values())
        return names[0], ceil(evictions_allowed(budget) / pods_each)

    def names(self, pod: Json) -> list[str]:
        """Return the names of the budgets that select a pod."""
        labels = pod["metadata"].get("labels") or {}
        return [
            budget["metadata"]["name"]
            for budget in self._at_home.get(pod["metadata"]["namespace"], ())
            if selects((budget.get("spec") or {}).get("selector"), labels)
        ]


def evictions_allowed(budget: Json) -> int:
    """Return the allowed evictions of a budget; 0 while its status is outdated."""
    status, generation = budget.get("status") or {}, budget["metadata"].get("generation", 0)
    is_current = status.get("observedGeneration", generation) >= generation
    allowed = int(status.get("disruptionsAllowed", 0)) if is_current else 0
    return max(0, min(allowed, MAX_REPLICAS))
