"""The controller's decision for a generated cluster, and the evaluation of the scheduler's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of
from controller.observe.gather import World, claims_in, gather
from controller.observe.observed import ObservedVariant
from controller.observe.pods import target_of_pod
from controller.observe.policies import Policies
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Plan, SolverStatus
from controller.planning.inputs import Settings
from controller.planning.inventory import admits
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from hack.clusters.generated import CAPACITY, NAMESPACE, GeneratedCluster

_SETTINGS: Final = Settings(relief_solves=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCluster:
    """A plan in which everything that it adds fits, with its inputs."""

    cluster: GeneratedCluster
    snapshot: Snapshot
    observed: Mapping[Key, ObservedVariant]
    plan: Plan

    @property
    def added(self) -> Mapping[str, int]:
        """The number of new pods by variant that have a node in the plan."""
        counts: Counter[str] = Counter()
        for place in self.plan.placements:
            counts[place.name] += place.pods
        return counts

    @property
    def leaving(self) -> tuple[str, ...]:
        """Names of the pods that ReplicaSets would delete."""
        decided = {item.name: item.replicas for item in self.plan.decisions}
        return tuple(
            replica.name
            for variant in self.snapshot.variants
            for replica in variant.replicas[: max(0, len(variant.replicas) - decided[variant.name])]
        )


def plan_cluster(cluster: GeneratedCluster, nodes: Sequence[Json], pods: Sequence[Json]) -> PlannedCluster:
    """Plan as the controller does. Raises ValueError if no plan was made."""
    world = World(
        autoscalings=cluster.autoscalings,
        targets={TargetKey(TargetKind.DEPLOYMENT, *key): item for key, item in cluster.deployments.items()},
        pods=pods,
        nodes=nodes,
        autoscalers=(),
    )
    claims = claims_in(world)
    seen = gather(world, claims, policies=Policies(), now_seconds=0.0, may_scale_to_zero=False)
    if seen.unplanned:
        raise ValueError(f"{cluster.name}: objects in {NAMESPACE} cannot be planned: {seen.unplanned}")
    variants = tuple(replace(variant, capacity=CAPACITY) for variant in seen.snapshot.variants)
    snapshot = replace(seen.snapshot, variants=variants, loads=cluster.loads)
    made = plan(snapshot, _SETTINGS)
    if made.solver.status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
        raise ValueError(f"{cluster.name}: no plan: {made.solver.message}")
    return PlannedCluster(cluster=cluster, snapshot=snapshot, observed=seen.observed, plan=made)


_UNSCHEDULABLE: Final = "Unschedulable"


def is_settled(pod: Json) -> bool:
    """Tell whether the scheduler has processed a pod: it is bound, or known to be unschedulable."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return bool(pod["spec"].get("nodeName")) or any(
        item["type"] == "PodScheduled" and item.get("reason") == _UNSCHEDULABLE for item in conditions
    )


def offences(planned: PlannedCluster, pods: Sequence[Json]) -> Iterator[str]:
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
