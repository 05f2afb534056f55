"""What is there on the real control plane, kept current through watches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from apiserver.cluster.cache import Cache, key_of
from apiserver.cluster.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    VARIANT_AUTOSCALINGS,
)
from controller.observe.gather import World
from controller.observe.policies import Policies, read_policies
from hack.demo.scenario import NAMESPACE
from hack.installation.installation import NAMESPACE as INSTALLATION_NAMESPACE

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster
    from apiserver.schema.json import Json

_UNIT_COSTS = "accelerator-unit-costs"


class Stage:
    """Local copies of everything that the demo shows; `run` keeps them current until it is cancelled."""

    def __init__(self, cluster: Cluster) -> None:
        self._pods = Cache(cluster, PODS, namespace=NAMESPACE)
        self._nodes = Cache(cluster, NODES)
        self._deployments = Cache(cluster, DEPLOYMENTS, namespace=NAMESPACE)
        self._autoscalers = Cache(cluster, HORIZONTAL_POD_AUTOSCALERS, namespace=NAMESPACE)
        self._autoscalings = Cache(cluster, VARIANT_AUTOSCALINGS, namespace=NAMESPACE)
        self._config_maps = Cache(cluster, CONFIG_MAPS, namespace=INSTALLATION_NAMESPACE)
        self._caches = (
            self._pods,
            self._nodes,
            self._deployments,
            self._autoscalers,
            self._autoscalings,
            self._config_maps,
        )

    async def run(self) -> None:
        """Follow all collections."""
        async with asyncio.TaskGroup() as group:
            for cache in self._caches:
                group.create_task(cache.run())

    async def synced(self) -> None:
        """Wait until every collection was listed once."""
        for cache in self._caches:
            await cache.synced.wait()

    def pods(self) -> tuple[Json, ...]:
        """Return the pods of the demo."""
        return self._pods.items()

    def world(self) -> World:
        """Return everything at this moment."""
        return World(
            autoscalings=self._autoscalings.items(),
            deployments={key_of(item): item for item in self._deployments.items()},
            pods=self._pods.items(),
            nodes=self._nodes.items(),
            autoscalers=self._autoscalers.items(),
        )

    def policies(self) -> Policies:
        """Return prices and service classes as they are laid down now."""
        config_maps = {item["metadata"]["name"]: item for item in self._config_maps.items()}
        return read_policies(config_maps, unit_costs=_UNIT_COSTS)
