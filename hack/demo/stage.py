"""Live objects of the real control plane, through the same watches as the controller's."""

from __future__ import annotations

from apiserver.cluster.client import Cluster
from apiserver.schema.json import Json
from controller.caches import Caches
from controller.observe.gather import World
from controller.observe.policies import Policies, read_policies
from hack.demo.scenario import NAMESPACE
from hack.installation.installation import NAMESPACE as INSTALLATION_NAMESPACE

_UNIT_COSTS = "accelerator-unit-costs"


class Stage:
    """Caches of everything that the demo shows; `run` keeps them current until cancelled."""

    def __init__(self, cluster: Cluster) -> None:
        self._caches = Caches(cluster, namespace=INSTALLATION_NAMESPACE)

    async def run(self) -> None:
        """Watch all collections."""
        await self._caches.run()

    async def synced(self) -> None:
        """Wait until every initial list is complete."""
        await self._caches.synced()

    def pods(self) -> tuple[Json, ...]:
        """Return the pods of the demo."""
        pods = self._caches.world().pods
        return tuple(pod for pod in pods if pod["metadata"]["namespace"] == NAMESPACE)

    def world(self) -> World:
        """Return the current state."""
        return self._caches.world()

    def bindings(self) -> tuple[Json, ...]:
        """Return the AutoscalingPolicyBindings."""
        return tuple(self._caches.bound_world().bindings)

    def policies(self) -> Policies:
        """Return the current prices and service classes."""
        return read_policies(self._caches.config_maps(), unit_costs=_UNIT_COSTS)
