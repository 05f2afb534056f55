"""What is there on the real control plane, kept current through the same watches as the controller's."""

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
    """Local copies of everything that the demo shows; `run` keeps them current until it is cancelled."""

    def __init__(self, cluster: Cluster) -> None:
        self._caches = Caches(cluster, namespace=INSTALLATION_NAMESPACE)

    async def run(self) -> None:
        """Follow all collections."""
        await self._caches.run()

    async def synced(self) -> None:
        """Wait until every collection was listed once."""
        await self._caches.synced()

    def pods(self) -> tuple[Json, ...]:
        """Return the pods of the demo."""
        pods = self._caches.world().pods
        return tuple(pod for pod in pods if pod["metadata"]["namespace"] == NAMESPACE)

    def world(self) -> World:
        """Return everything at this moment."""
        return self._caches.world()

    def bindings(self) -> tuple[Json, ...]:
        """Return the AutoscalingPolicyBindings."""
        return tuple(self._caches.bound_world().bindings)

    def policies(self) -> Policies:
        """Return prices and service classes as they are laid down now."""
        return read_policies(self._caches.config_maps(), unit_costs=_UNIT_COSTS)
