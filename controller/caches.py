"""Local copies of what the controller looks at, and the world as they hold it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from apiserver.cluster.cache import Cache, key_of, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    NODES,
    PODS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.schema.json import Json
from controller.observe.gather import World
from controller.observe.projections import Projection
from controller.observe.targets import TargetKey, TargetKind
from controller.optional_cache import OptionalCache

RESOURCE_QUOTAS: Final = Resource(group="", version="v1", plural="resourcequotas", kind="ResourceQuota")
NODE_POOLS: Final = Resource(
    group="karpenter.sh", version="v1", plural="nodepools", kind="NodePool", namespaced=False
)
SILENT_SECONDS: Final = 600.0
"""A copy that the API server has not confirmed for so long is too old to decide on."""


class Caches:
    """Every collection that planning reads, kept current by `run`."""

    def __init__(self, cluster: Cluster, *, namespace: str) -> None:
        self._autoscalings = Cache(cluster, VARIANT_AUTOSCALINGS, reduce=without_managed_fields)
        projection = Projection()
        self._deployments = Cache(cluster, DEPLOYMENTS, reduce=projection.workload)
        self._stateful_sets = Cache(cluster, STATEFUL_SETS, reduce=projection.workload)
        self._pods = Cache(cluster, PODS, reduce=projection.pod)
        self._nodes = Cache(cluster, NODES, reduce=projection.node)
        self._autoscalers = Cache(cluster, HORIZONTAL_POD_AUTOSCALERS, reduce=without_managed_fields)
        self._config_maps = Cache(cluster, CONFIG_MAPS, namespace=namespace, reduce=without_managed_fields)
        self._all = (
            self._autoscalings,
            self._deployments,
            self._stateful_sets,
            self._pods,
            self._nodes,
            self._autoscalers,
            self._config_maps,
        )
        self._leader_worker_sets = OptionalCache(
            cluster,
            LEADER_WORKER_SETS,
            without="LeaderWorkerSets",
            silent_seconds=SILENT_SECONDS,
            reduce=projection.workload,
        )
        self._quotas = OptionalCache(
            cluster,
            RESOURCE_QUOTAS,
            without="quotas",
            silent_seconds=SILENT_SECONDS,
            reduce=without_managed_fields,
        )
        self._node_pools = OptionalCache(
            cluster,
            NODE_POOLS,
            without="the node pools of Karpenter",
            silent_seconds=SILENT_SECONDS,
            reduce=without_managed_fields,
        )

        self._disruption_budgets = OptionalCache(
            cluster,
            DISRUPTION_BUDGETS,
            without="disruption budgets: evictions keep them all the same, preemption does not",
            silent_seconds=SILENT_SECONDS,
            reduce=without_managed_fields,
        )
        self._optional = (
            self._leader_worker_sets,
            self._quotas,
            self._node_pools,
            self._disruption_budgets,
        )

    async def run(self) -> None:
        """Keep all copies current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in (*self._all, *self._optional):
                group.create_task(cache.run())

    async def synced(self) -> None:
        """Wait until every first list is in."""
        for cache in self._all:
            await cache.synced.wait()
        for optional in self._optional:
            await optional.settled.wait()

    def why_not_current(self) -> str | None:
        """Return which copy is missing or too old to decide on, or None."""
        for cache in self._all:
            if not cache.synced.is_set():
                return f"{cache.resource.plural} are not listed yet"
            if cache.age_seconds() > SILENT_SECONDS:
                return f"nothing was heard of {cache.resource.plural} for {cache.age_seconds():.0f} s"
        return None

    def world(self) -> World:
        """Return everything as it stands now."""
        return World(
            autoscalings=self._autoscalings.items(),
            targets={
                TargetKey(kind, *key_of(item)): item
                for kind, cache in (
                    (TargetKind.DEPLOYMENT, self._deployments),
                    (TargetKind.STATEFUL_SET, self._stateful_sets),
                    (TargetKind.LEADER_WORKER_SET, self._leader_worker_sets),
                )
                for item in cache.items()
            },
            pods=self._pods.items(),
            nodes=self._nodes.items(),
            autoscalers=self._autoscalers.items(),
            quotas=self._quotas.items(),
            node_pools=self._node_pools.items(),
            disruption_budgets=self._disruption_budgets.items(),
        )

    def config_maps(self) -> Mapping[str, Json]:
        """Return the ConfigMaps of our own namespace by name."""
        return {item["metadata"]["name"]: item for item in self._config_maps.items()}
