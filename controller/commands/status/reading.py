"""Reads from a live cluster what planning reads, with the permissions of the user, and nothing else.

Whatever may not be read is missing, with a message about what that hides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.heartbeat import LEASE_NAME, Heartbeat, heartbeat_of
from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LEASES,
    MODELS,
    NODES,
    PODS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
    Selection,
)
from apiserver.kinds.decision_record import CONFIG_MAP as DECISIONS
from apiserver.schema.json import Json
from controller.caches import (
    DEVICE_CLASSES,
    NODE_POOLS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
)
from controller.observe.decision_following import API_SERVICE
from controller.projections import Projection
from controller.variants.announcing import REPORTER

_AT_ONCE: Final = 4
"""Lists that are read at the same time."""

_OUR_EVENTS: Final = f"reportingController={REPORTER}"
_CLUSTER: Final = (NODES, NODE_POOLS, RESOURCE_SLICES, DEVICE_CLASSES)
_SHARED: Final = (PODS, RESOURCE_CLAIMS)
"""Resources of which all namespaces count for nodes, even if the state of one namespace is asked for."""

_OWN: Final = (
    VARIANT_AUTOSCALINGS,
    AUTOSCALING_POLICY_BINDINGS,
    MODELS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    LEADER_WORKER_SETS,
    RESOURCE_QUOTAS,
    RESOURCE_CLAIM_TEMPLATES,
    DISRUPTION_BUDGETS,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveObjects:
    """What was read at one moment."""

    objects: Mapping[Resource, Sequence[Json]]
    """Objects by resource; without those that are not served, or may not be read."""

    settings: Sequence[Json] = ()
    """ConfigMaps in the namespace of Stowplan."""

    forbidden: Sequence[Resource] = ()
    """What the user may not list."""

    heartbeat: Heartbeat | None = None
    """The controller's last cycle; None if it has none, or it may not be read."""

    api_services: Sequence[Json] | None = None
    """The APIService of external metrics, empty if there is none; None if that may not be read."""

    events: Sequence[Json] = ()
    system: str = ""
    """The namespace of Stowplan."""

    def may_read(self, resource: Resource) -> bool:
        """Tell whether the user may list a resource; one that is not served counts as readable."""
        return resource in self.objects or resource not in self.forbidden

    def of(self, resource: Resource) -> Sequence[Json]:
        """Return the objects of a resource."""
        return self.objects.get(resource, ())


@dataclass(slots=True)
class _ClusterReader:
    cluster: Cluster
    gate: asyncio.Semaphore
    projection: Projection = field(default_factory=Projection)
    forbidden: dict[Resource, None] = field(default_factory=dict)

    async def list(
        self, resource: Resource, namespace: str | None, *, field_selector: str | None = None
    ) -> Sequence[Json] | None:
        """Return the objects of a resource; None if it is not served, or may not be read.

        Raises ClusterError if the API server does not respond.
        """
        selection = Selection(resource=resource, namespace=namespace, field_selector=field_selector)
        try:
            async with self.gate:
                items, _ = await self.cluster.list_kept(selection, _reducer(self.projection, resource))
        except NotFound:
            return None
        except Forbidden:
            self.forbidden[resource] = None
            return None
        return items

    async def list_shared(self, resource: Resource, namespace: str | None) -> Sequence[Json] | None:
        """Return the objects of a resource in all namespaces, or if that is forbidden, those of one."""
        items = await self.list(resource, None)
        return await self.list(resource, namespace) if items is None and namespace else items


def _reducer(projection: Projection, resource: Resource) -> Callable[[Json], Json]:
    """Return the function that reduces an object of a resource, and keeps its kind."""
    reduce = {PODS: projection.pod, NODES: projection.node}.get(resource)
    if reduce is None:
        return projection.workload
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return lambda item: kind | _with_version(item, reduce(item))


def _with_version(item: Json, reduced: Json) -> Json:
    version = item["metadata"].get("resourceVersion")
    return reduced | {"metadata": reduced["metadata"] | {"resourceVersion": version}}


async def read_cluster(
    cluster: Cluster, *, namespace: str | None, system: str, with_events: bool = False
) -> LiveObjects:
    """Return the objects of a namespace, or of all; `system` is the namespace of Stowplan.

    Raises ClusterError if the API server does not respond, or knows no such user.
    """
    reading = _ClusterReader(cluster, asyncio.Semaphore(_AT_ONCE))
    lists = await asyncio.gather(
        *(reading.list(resource, None) for resource in _CLUSTER),
        *(reading.list_shared(resource, namespace) for resource in _SHARED),
        *(reading.list(resource, namespace) for resource in _OWN),
    )
    read = zip((*_CLUSTER, *_SHARED, *_OWN), lists, strict=True)
    objects = {resource: items for resource, items in read if items is not None}
    records = await reading.list(CONFIG_MAPS, namespace, field_selector=f"metadata.name={DECISIONS}")
    events = await reading.list(EVENTS, namespace, field_selector=_OUR_EVENTS) if with_events else None
    return LiveObjects(
        objects=objects | {CONFIG_MAPS: records or ()},
        settings=await reading.list(CONFIG_MAPS, system) or (),
        forbidden=tuple(reading.forbidden),
        heartbeat=await read_heartbeat(cluster, system),
        api_services=await _api_services(cluster),
        events=events or (),
        system=system,
    )


async def read_heartbeat(cluster: Cluster, system: str) -> Heartbeat | None:
    """Return the controller's last cycle; None if it has none, or it may not be read."""
    try:
        return heartbeat_of(await cluster.get(LEASES, LEASE_NAME, namespace=system))
    except (Forbidden, NotFound):
        return None


async def _api_services(cluster: Cluster) -> Sequence[Json] | None:
    try:
        return (await cluster.get(API_SERVICES, API_SERVICE),)
    except NotFound:
        return ()
    except ClusterError:
        return None
