"""Scheduling gates: holds pods until a plan has a place for them, then suggests the planned node.

A scheduler places pods one by one, in the order of their creation, and knows neither the plan nor the pods to
follow. A pod whose template has our scheduling gate waits until a plan has a place for it. Then the gate is
removed, and the planned node becomes a preferred node affinity, not a required one, because a node may fail
in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import filterfalse
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.resource import PODS
from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.identity import Key, key_of, seniority
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.observed import ObservedVariant
from controller.observe.pods import group_number, group_of, is_present, is_ready
from controller.observe.removal_order import is_rolling, template_of
from controller.planning.cluster import Node
from controller.planning.decision import Plan

_log = EventLogger(__name__)

GATE: Final = f"{PREFIX}placement"
"""The scheduling gate of a pod template that opts in to planned placement."""

_WEIGHT: Final = 100
_WRITERS: Final = 16
_NODE_NAME: Final = "metadata.name"
_PREFERENCES: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleasedPod:
    """A gated pod that may be scheduled now."""

    pod: Json
    node: str | None
    """The node to prefer; None if no plan has a place and there is no point in waiting."""

    def patch(self) -> Json:
        """Return the merge patch, which the API server rejects if the pod has changed."""
        spec = self.pod["spec"]
        change: Json = {"schedulingGates": [gate for gate in spec["schedulingGates"] if gate["name"] != GATE]}
        if self.node is not None:
            change["affinity"] = _preference_patch(spec.get("affinity") or {}, self.node)
        return {"metadata": {"resourceVersion": self.pod["metadata"]["resourceVersion"]}, "spec": change}


def let_in(
    observed: Mapping[Key, ObservedVariant],
    plan: Plan,
    nodes: Iterable[Node] = (),
    *,
    acted_on: Callable[[Key], bool] = lambda _: True,
) -> Iterator[ReleasedPod]:
    """Yield the gated pods of variants that may be scheduled, each with a place of the plan on a node.

    Replicas beyond the granted number keep waiting, because their controller is about to delete them. Only
    those that a rollout adds are released: older ones are deleted once these are ready. Places of pods that
    were released before and are not bound yet are reserved. If a plan is not acted on, or counts on nodes to
    be added, pods are released without a place, so that a node autoscaler sees them.
    """
    granted = {item.key: item.replicas for item in plan.decisions}
    labels = {node.name: node.labels for node in nodes}
    places: dict[Key, list[str]] = defaultdict(list)
    for place in plan.placements:
        places[place.namespace, place.name] += [place.node] * place.pods
    for key, item in observed.items():
        gated = sorted(filter(is_gated, item.pods), key=_turn)
        if not gated:
            continue
        if key in granted and acted_on(key):
            due = _due(gated, item.pods, granted[key], _surge(item))
            gated = [pod for pod in gated if group_of(pod) in due]
        free = _untaken(places[key], item.pods) if acted_on(key) else ()
        domain_of = partial(_domain, labels, item.target.together_in)
        node_of = dict(_place(gated, item, free, domain_of))
        yield from (ReleasedPod(pod=pod, node=node_of.get(key_of(pod))) for pod in gated)


def _domain(labels: Mapping[str, Iterable[tuple[str, str]]], topology: str, node: str) -> str:
    """Return the domain of a node; all pods of a replica belong in one."""
    return dict(labels.get(node, ())).get(topology, "")


def _turn(pod: Json) -> tuple[int, object]:
    """Return the sort key of a gated pod: the highest groups, or the youngest pods, are deleted first."""
    return group_number(pod), seniority(pod)


def _due(gated: Sequence[Json], pods: Sequence[Json], granted: int, surge: int) -> AbstractSet[str]:
    """Return the replicas whose pods may be scheduled, `granted` in all and `surge` more of the new template.

    Those of which some pods were released come first: two groups that are released in part would keep each
    other from becoming complete.
    """
    started = [group_of(pod) for pod in reversed(pods) if not is_gated(pod)]
    in_order = [*dict.fromkeys([*started, *map(group_of, gated)])]
    beyond = {*in_order[granted:]}
    added = _of_new_template([pod for pod in gated if group_of(pod) in beyond], pods)
    return {*in_order[:granted], *[*dict.fromkeys(map(group_of, added))][:surge]}


def _place(
    gated: Sequence[Json], item: ObservedVariant, free: Iterable[str], domain_of: Callable[[str], str]
) -> Iterator[tuple[Key, str]]:
    """Yield gated pods with places: those of one replica in one domain.

    Replicas of which a pod already has a node come first. Places for pods of a replica that do not exist yet
    are reserved. Pods without accelerators can run anywhere, and must not use up a place.
    """
    rooms: dict[str, list[str]] = defaultdict(list)
    for node in free:
        rooms[domain_of(node)].append(node)
    homes = _homes(item.pods, domain_of)
    groups: dict[str, list[Json]] = defaultdict(list)
    for pod in gated:
        if accelerators_of(pod["spec"]):
            groups[group_of(pod)].append(pod)
    for name in sorted(groups, key=lambda name: name not in homes):
        missing = max(len(groups[name]), item.target.pods_per_replica - len(homes.get(name, ())))
        # Without enough places on existing nodes, the others are on nodes to be added.
        best = max(sorted(rooms), key=lambda domain: min(len(rooms[domain]), missing), default="")
        room = rooms[homes[name][0] if name in homes else best]
        yield from zip(map(key_of, groups[name]), room, strict=False)
        del room[:missing]


def _homes(pods: Iterable[Json], domain_of: Callable[[str], str]) -> Mapping[str, Sequence[str]]:
    """Return the domains of the pods of each replica that are bound, or were released for a node."""
    homes: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if is_present(pod) and not is_gated(pod) and accelerators_of(pod["spec"]):
            bound = pod["spec"].get("nodeName")
            homes[group_of(pod)] += map(domain_of, [bound] if bound else _let_in_for(pod))
    return {name: domains for name, domains in homes.items() if domains}


def _surge(item: ObservedVariant) -> int:
    """Return the number of replicas that a rollout has added to those that a target requests."""
    if not is_rolling(item.pods):
        return 0
    return max(0, len(set(map(group_of, item.pods))) - item.target.replicas)


def strays(pods: Iterable[Json], observed: Iterable[ObservedVariant]) -> Iterator[ReleasedPod]:
    """Yield the gated pods that belong to no planned variant and would wait forever."""
    known = {key_of(pod) for item in observed for pod in item.pods}
    for pod in pods:
        if is_gated(pod) and key_of(pod) not in known:
            yield ReleasedPod(pod=pod, node=None)


def is_gated(pod: Json) -> bool:
    """Tell whether a pod is held by our scheduling gate."""
    gates = pod["spec"].get("schedulingGates") or []
    return is_present(pod) and any(gate["name"] == GATE for gate in gates)


def _untaken(places: Sequence[str], pods: Iterable[Json]) -> Sequence[str]:
    """Return the places in order, without those of released pods that are not bound yet."""
    waiting = (
        pod for pod in pods if is_present(pod) and not pod["spec"].get("nodeName") and not is_gated(pod)
    )
    released = Counter(node for pod in waiting for node in _let_in_for(pod))
    return sorted((Counter(places) - released).elements())


def _let_in_for(pod: Json) -> Iterator[str]:
    """Yield the node that a released pod prefers, if any: our term is the last one."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_PREFERENCES) or [])[-1:]:
        for field in term["preference"].get("matchFields") or []:
            if (field["key"], field["operator"], len(field["values"])) == (_NODE_NAME, "In", 1):
                yield field["values"][0]


def _preference_patch(affinity: Json, node: str) -> Json:
    """Return the patch of an affinity that adds a preferred node to its terms."""
    by_name = {"key": _NODE_NAME, "operator": "In", "values": [node]}
    term = {"weight": _WEIGHT, "preference": {"matchFields": [by_name]}}
    already = (affinity.get("nodeAffinity") or {}).get(_PREFERENCES) or []
    return {"nodeAffinity": {_PREFERENCES: [*already, term]}}


def _of_new_template(gated: Iterable[Json], pods: Iterable[Json]) -> Sequence[Json]:
    """Return the gated pods with the template of the youngest pod that is not ready.

    During a rollout, these are the pods that it adds. A ready pod can be younger and of the old template: the
    replacement of one that was evicted.
    """
    youngest = max(filterfalse(is_ready, pods), key=seniority, default=None)
    return [pod for pod in gated if youngest and template_of(pod) == template_of(youngest)]


class GateKeeper:
    """Removes gates; failures are retried in the next cycle, as the pod still exists."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._slots = asyncio.Semaphore(_WRITERS)
        self._why_not = ""

    async def open_for(self, due: Iterable[ReleasedPod]) -> None:
        """Release pods; never raises, and logs a failure once until it changes."""
        failures = [error for error in await asyncio.gather(*map(self._open, due)) if error is not None]
        why_not = failures[0].message if failures else ""
        if why_not and why_not != self._why_not:
            _log.warning("scheduling gates not removed", why=why_not)
        self._why_not = why_not

    async def _open(self, due: ReleasedPod) -> ClusterError | None:
        metadata = due.pod["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        async with self._slots:
            try:
                await self._cluster.patch_merge(PODS, name, due.patch(), namespace=namespace)
            except (NotFound, Conflict):
                return None  # deleted or changed meanwhile: the next cycle decides again
            except ClusterError as error:
                return error
        _log.info("scheduling gate removed", namespace=namespace, pod=name, node=due.node)
        return None
