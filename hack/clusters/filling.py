"""Writes clusters into a control plane, plans from its content, and has its scheduler place the pods."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from apiserver.cluster.client import Cluster as Connection
from apiserver.cluster.resource import NODES, PODS, Resource
from apiserver.schema.json import Json
from controller.observe.pods import by_target
from controller.variants.placing import let_in
from hack.clusters.generated import CLUSTER_LABEL, NAMESPACE, GeneratedCluster, PodShape, new_pod
from hack.clusters.planned import PlannedCluster, is_settled, offences, plan_cluster
from hack.controlplane import ControlPlane

PACKED: Final = "stowplan-packed"
DEFAULT: Final = "default-scheduler"


class PodOrder(StrEnum):
    """The order in which the scheduler receives the pods of a cluster."""

    ARBITRARY = "arrival order"
    BY_PRIORITY = "arrival order, with a priority by size"
    LARGEST_FIRST = "largest first"
    GATED = "gated, arrival order"


def new_names(planned: PlannedCluster) -> list[str]:
    """Return the names of the pods that a plan adds, which are the same in every way."""
    return [f"{planned.cluster.name}-new-{number}" for number in range(sum(planned.added.values()))]


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulingWay:
    """A scheduler and an order for the pods that a plan adds."""

    scheduler: str
    order: PodOrder

    def new_pods(self, planned: PlannedCluster) -> list[Json]:
        """Return the pods that the plan adds, in the order of creation."""
        shapes = {shape.name: shape for shape in planned.cluster.shapes}
        new_shapes = [shapes[name] for name, count in sorted(planned.added.items()) for _ in range(count)]
        Random(planned.cluster.seed).shuffle(new_shapes)  # noqa: S311 (not used for security)
        if self.order is PodOrder.LARGEST_FIRST:
            new_shapes.sort(key=lambda shape: -shape.accelerators)
        return [self._pod(name, shape) for name, shape in zip(new_names(planned), new_shapes, strict=True)]

    def _pod(self, name: str, shape: PodShape) -> Json:
        by_size = f"stowplan-accelerators-{shape.accelerators}" if self.order is PodOrder.BY_PRIORITY else ""
        return new_pod(
            name,
            shape,
            scheduler=self.scheduler,
            priority_class=by_size,
            is_gated=self.order is PodOrder.GATED,
        )


_Item = TypeVar("_Item")

_MANIFESTS: Final = Path(__file__).parents[2] / "manifests" / "scheduler"
_CALLS_AT_ONCE: Final = 48
_POLL_SECONDS: Final = 0.25
_PATIENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FillResult:
    """The scheduler's result for one plan in one way."""

    cluster: GeneratedCluster
    way: SchedulingWay
    added: int
    """The number of replicas that the plan had a node for."""

    waiting: tuple[str, ...]
    """Names of the pods without a node."""

    offences: tuple[str, ...]


@contextmanager
def cluster_plane() -> Iterator[ControlPlane]:
    """Run a control plane without kubelets and controllers.

    Its scheduler has the shipped profile in addition to the default one.
    """
    with ControlPlane(
        controller_manager=False, kwok=False, scheduler_profiles=_MANIFESTS / "packed.yaml"
    ) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        started.kubectl("create", "serviceaccount", "default", f"--namespace={NAMESPACE}")
        started.kubectl("apply", f"--filename={_MANIFESTS / 'priority-classes.yaml'}")
        yield started


async def fill_clusters(
    control_plane: ControlPlane, clusters: Sequence[GeneratedCluster], ways: Iterable[SchedulingWay]
) -> list[FillResult]:
    """Write and plan all clusters, then fill them in one way after the other.

    Raises TimeoutError if the scheduler does not process all pods in time.
    """
    filled = []
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        await _each(clusters, lambda cluster: _create_cluster(connection, cluster))
        nodes, pods = await _list_objects(connection, NODES), await _list_objects(connection, PODS)
        plans = await _plan_clusters(clusters, nodes, pods)
        # As ReplicaSets do on a scale-down.
        await _each(plans, lambda plan: _delete(connection, plan.leaving))
        for number, way in enumerate(ways):
            if number:  # each way starts from the same cluster
                await _each(plans, lambda plan: _delete(connection, new_names(plan)))
            filled += await _in_one_way(connection, plans, way)
    return filled


async def _plan_clusters(
    clusters: Sequence[GeneratedCluster], nodes: Mapping[str, list[Json]], pods: Mapping[str, list[Json]]
) -> list[PlannedCluster]:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        return await asyncio.gather(
            *(
                loop.run_in_executor(processes, plan_cluster, item, nodes[item.name], pods[item.name])
                for item in clusters
            )
        )


async def _in_one_way(
    connection: Connection, plans: Sequence[PlannedCluster], way: SchedulingWay
) -> list[FillResult]:
    """Create the pods that the plans add, and return the results."""
    await _each(plans, lambda plan: _grow(connection, plan, way))
    if way.order is PodOrder.GATED:
        pods = await _list_objects(connection, PODS)
        await _each(plans, lambda plan: _let_in(connection, plan, pods[plan.cluster.name]))
    pods = await _wait_for_scheduler(connection)
    return [_outcome_of(plan, way, pods[plan.cluster.name]) for plan in plans]


async def _each(items: Iterable[_Item], work: Callable[[_Item], Awaitable[None]]) -> None:
    gate = asyncio.Semaphore(_CALLS_AT_ONCE)

    async def one(item: _Item) -> None:
        async with gate:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(one(item))


async def _create_cluster(connection: Connection, cluster: GeneratedCluster) -> None:
    """Create the nodes and the pods running on them."""
    for node in cluster.nodes:
        await connection.create(NODES, node)
        # Admission taints new nodes as not ready, and the controller that would remove the taint is not
        # running.
        taints = {"op": "add", "path": "/spec/taints", "value": node["spec"]["taints"]}
        await connection.patch_json(NODES, node["metadata"]["name"], [taints])
    for pod in cluster.pods:
        await connection.create(PODS, pod, namespace=NAMESPACE)


async def _delete(connection: Connection, names: Iterable[str]) -> None:
    for name in names:
        await connection.delete(PODS, name, namespace=NAMESPACE)


async def _grow(connection: Connection, plan: PlannedCluster, way: SchedulingWay) -> None:
    for pod in way.new_pods(plan):
        await connection.create(PODS, pod, namespace=NAMESPACE)


async def _let_in(connection: Connection, plan: PlannedCluster, pods: Sequence[Json]) -> None:
    """Release gated pods as the controller does."""
    groups = by_target(pods)
    observed = {
        key: replace(item, pods=groups.get(item.target.key, ())) for key, item in plan.observed.items()
    }
    for admitted in let_in(observed, plan.plan):
        name = admitted.pod["metadata"]["name"]
        await connection.patch_merge(PODS, name, admitted.patch(), namespace=NAMESPACE)


async def _wait_for_scheduler(connection: Connection) -> Mapping[str, list[Json]]:
    """Wait until the scheduler has processed every pod. Raises TimeoutError."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        pods = await _list_objects(connection, PODS)
        open_names = [p["metadata"]["name"] for group in pods.values() for p in group if not is_settled(p)]
        if not open_names:
            return pods
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{len(open_names)} pods were not processed by the scheduler, such as {open_names[0]}"
            )
        await asyncio.sleep(_POLL_SECONDS)


async def _list_objects(connection: Connection, resource: Resource) -> Mapping[str, list[Json]]:
    """Return all objects of generated clusters, by cluster."""
    by_cluster: dict[str, list[Json]] = defaultdict(list)
    for item in (await connection.list(resource, label_selector=CLUSTER_LABEL))["items"]:
        by_cluster[item["metadata"]["labels"][CLUSTER_LABEL]].append(item)
    return by_cluster


def _outcome_of(plan: PlannedCluster, way: SchedulingWay, pods: Sequence[Json]) -> FillResult:
    return FillResult(
        cluster=plan.cluster,
        way=way,
        added=sum(plan.added.values()),
        waiting=tuple(sorted(pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName"))),
        offences=tuple(offences(plan, pods)),
    )
