"""Caches of the objects that planning reads, and snapshots of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from apiserver.cluster.cache import Cache, key_of, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import SILENT_SECONDS, OptionalCache
from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICIES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    FORMER_INFERENCE_POOLS,
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    NODES,
    PODS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.decision_record import CONFIG_MAP as DECISIONS
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import SERVICE_CLASS
from apiserver.schema.json import Json
from controller.bindings.scale_reader import ScaleReader
from controller.observe.binding_targets import BoundWorld, bound_references, bound_targets
from controller.observe.decision_following import (
    API_SERVICE,
    UNKNOWN_METRICS,
    ExternalMetrics,
    external_metrics_of,
)
from controller.observe.declarations import Records, annotated_references
from controller.observe.devices import NOTHING_FURTHER, FurtherAccelerators, Translation
from controller.observe.gather import World
from controller.observe.objectives import OBJECTIVES_IGNORED, ObjectiveRules, Objectives
from controller.observe.scales import Scale, ScaleReference, scale_references, scaled_targets
from controller.observe.targets import TargetKey, TargetKind, asked_replicas
from controller.projections import Projection

RESOURCE_QUOTAS: Final = Resource(group="", version="v1", plural="resourcequotas", kind="ResourceQuota")
NODE_POOLS: Final = Resource(
    group="karpenter.sh", version="v1", plural="nodepools", kind="NodePool", namespaced=False
)
_DYNAMIC: Final = "resource.k8s.io"
RESOURCE_SLICES: Final = Resource(
    group=_DYNAMIC, version="v1", plural="resourceslices", kind="ResourceSlice", namespaced=False
)
RESOURCE_CLAIMS: Final = Resource(group=_DYNAMIC, version="v1", plural="resourceclaims", kind="ResourceClaim")
RESOURCE_CLAIM_TEMPLATES: Final = Resource(
    group=_DYNAMIC, version="v1", plural="resourceclaimtemplates", kind="ResourceClaimTemplate"
)
DEVICE_CLASSES: Final = Resource(
    group=_DYNAMIC, version="v1", plural="deviceclasses", kind="DeviceClass", namespaced=False
)


_WITHOUT_BUDGETS: Final = "disruption budgets: evictions still respect them, preemption does not"


class Caches:
    """Caches of all kinds that planning reads, kept current by `run`."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        objectives: ObjectiveRules = OBJECTIVES_IGNORED,
        further: FurtherAccelerators = NOTHING_FURTHER,
        annotated: bool = False,
    ) -> None:
        """Create the caches. `namespace` is our own; `annotated` autoscalers are planned if it is set."""
        self._further = further
        projection = Projection()
        self._autoscalings = Cache(cluster, VARIANT_AUTOSCALINGS, reduce=projection.with_writer)
        self._deployments = Cache(cluster, DEPLOYMENTS, reduce=projection.workload)
        self._stateful_sets = Cache(cluster, STATEFUL_SETS, reduce=projection.workload)
        self._pods = Cache(cluster, PODS, reduce=projection.pod)
        self._nodes = Cache(cluster, NODES, reduce=projection.node)
        self._autoscalers = Cache(cluster, HORIZONTAL_POD_AUTOSCALERS, reduce=without_managed_fields)
        self._policies, self._bindings = _policies(cluster, projection)
        self._scales = ScaleReader(cluster, self._references, silent_seconds=SILENT_SECONDS)
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
            cluster, LEADER_WORKER_SETS, reduce=projection.workload, without="LeaderWorkerSets"
        )
        self._acting = _acting(cluster)
        self._quotas = OptionalCache(cluster, RESOURCE_QUOTAS, without="quotas")
        self._node_pools = OptionalCache(cluster, NODE_POOLS, without="the node pools of Karpenter")
        self._disruption_budgets = OptionalCache(cluster, DISRUPTION_BUDGETS, without=_WITHOUT_BUDGETS)
        self._objective_rules = objectives
        self._objectives = _objectives(cluster) if objectives.are_in_force else ()
        self._pools = _pools(cluster, is_former_read=objectives.are_in_force)
        self._dynamic = _dynamic(cluster, projection)
        self._records = _records(cluster) if annotated else ()
        self._optional = (
            *self._dynamic.values(),
            *self._objectives,
            *self._pools,
            *self._records,
            self._policies,
            self._bindings,
            self._leader_worker_sets,
            *self._acting.values(),
            self._quotas,
            self._node_pools,
            self._disruption_budgets,
        )

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self._all:
                group.create_task(cache.run())
            for optional in self._optional:
                group.create_task(optional.run())
            group.create_task(self._scales.run())

    async def wait_until_synced(self) -> None:
        """Wait until every initial list is complete."""
        for cache in self._all:
            await cache.synced.wait()
        for optional in self._optional:
            await optional.settled.wait()

    def why_not_current(self) -> str | None:
        """Return which cache is missing or too old to decide on, or None."""
        needed = (cache.why_not_current(within_seconds=SILENT_SECONDS) for cache in self._all)
        # Nodes must not seem to have lost their devices, nor bindings to be gone, because a watch failed.
        rest = (
            *self._objectives,
            # Otherwise only the queues of endpoint pickers are looked up in them.
            *(self._pools if self._objective_rules.are_in_force else ()),
            *self._records,
            self._policies,
            self._bindings,
        )
        watched = (*self._dynamic.values(), *rest)
        return next(filter(None, (*needed, *(cache.why_lost() for cache in watched))), None)

    def world(self) -> World:
        """Return the current state, with devices and claims translated into extended resources."""
        dynamic = self._translation()
        scaled = self._scales.last_scales(self._pods.items())
        return World(
            autoscalings=self._autoscalings.items(),
            targets={key: dynamic.workload(item) for key, item in scaled.workloads.items()}
            | {
                TargetKey(kind, *key_of(item)): dynamic.workload(item)
                for kind, cache in self._workloads()
                for item in cache.items()
            },
            pods=tuple(map(dynamic.pod, scaled.pods)),
            nodes=tuple(map(dynamic.node, self._nodes.items())),
            autoscalers=self._autoscalers.items(),
            scaled_objects=self._acting[SCALED_OBJECTS].items(),
            quotas=self._quotas.items(),
            node_pools=self._node_pools.items(),
            disruption_budgets=self._disruption_budgets.items(),
            inference_pools=self._inference_pools(),
            records=self._decision_records(),
            unread=scaled.unread,
            bound=bound_targets(self._bindings.items()),
        )

    def bound_world(self) -> BoundWorld:
        """Return the current state of everything that decisions on bindings depend on."""
        bindings = self._bindings.items()
        scaled = self._scales.last_scales(self._pods.items()) if bindings else None
        known = {key: self._scales.last_scale(key) for key in scaled_targets(bound_references(bindings))}
        return BoundWorld(
            policies=self._policies.items(),
            bindings=bindings,
            autoscalings=self._autoscalings.items(),
            autoscalers=self._autoscalers.items(),
            scaled_objects=self._acting[SCALED_OBJECTS].items(),
            replicas={key: scale.replicas for key, scale in known.items() if isinstance(scale, Scale)}
            | {
                TargetKey(kind, *key_of(item)): asked_replicas(item)
                for kind, cache in self._workloads()
                for item in cache.items()
            },
            unread={key: scale for key, scale in known.items() if isinstance(scale, str)},
            pods=scaled.pods if scaled else (),
        )

    def external_metrics(self) -> ExternalMetrics:
        """Return the state of the external metrics API."""
        cache = self._acting[API_SERVICES]
        if not cache.is_readable or cache.why_lost():
            return UNKNOWN_METRICS
        return external_metrics_of(cache.items())

    def objectives(self) -> Objectives:
        """Return the InferenceObjectives that count now."""
        items = [item for cache in self._objectives for item in cache.items()]
        return self._objective_rules.counting(items, self._inference_pools())

    async def scalable(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a scalable kind, or None. Raises ClusterError if discovery fails."""
        return await self._scales.resource(api_version, kind)

    def _inference_pools(self) -> Sequence[Json]:
        return [item for cache in self._pools for item in cache.items()]

    def _references(self) -> Sequence[ScaleReference]:
        """Return the references of the objects that are planned to their targets."""
        own = (*scale_references(self._autoscalings.items()), *bound_references(self._bindings.items()))
        if not self._records:
            return own
        scaled_objects = self._acting[SCALED_OBJECTS].items()
        return (*own, *annotated_references(self._autoscalers.items(), scaled_objects))

    def _decision_records(self) -> Records | None:
        """Return what was published about annotated autoscalers; None if they are not planned."""
        if not any(cache.is_readable for cache in self._records):
            return None
        items = (item for cache in self._records for item in cache.items())
        return {item["metadata"]["namespace"]: item.get("data") or {} for item in items}

    def _workloads(self) -> tuple[tuple[TargetKind, Cache | OptionalCache], ...]:
        return (
            (TargetKind.DEPLOYMENT, self._deployments),
            (TargetKind.STATEFUL_SET, self._stateful_sets),
            (TargetKind.LEADER_WORKER_SET, self._leader_worker_sets),
        )

    def _translation(self) -> Translation:
        if not all(cache.is_readable for cache in self._dynamic.values()):
            return Translation(further=self._further)
        return Translation(
            further=self._further,
            slices=self._dynamic[RESOURCE_SLICES].items(),
            claims=self._dynamic[RESOURCE_CLAIMS].items(),
            templates=self._dynamic[RESOURCE_CLAIM_TEMPLATES].items(),
            classes=self._dynamic[DEVICE_CLASSES].items(),
        )

    def named_config_maps(self) -> frozenset[str]:
        """Return the names of the ConfigMaps in which variants and bindings look up their service class."""
        specs = (item.get("spec") for item in self._autoscalings.items())
        references = (spec.get("sloClassRef") for spec in specs if isinstance(spec, dict))
        names = {str(item.get("name")) for item in references if isinstance(item, dict)}
        noted = (item["metadata"].get("annotations") or {} for item in self._bindings.items())
        classes = (annotations.get(SERVICE_CLASS) for annotations in noted)
        return frozenset(names | {str(text).partition("/")[0] for text in classes if text})

    def config_maps(self) -> Mapping[str, Json]:
        """Return the ConfigMaps of our own namespace by name."""
        return {item["metadata"]["name"]: item for item in self._config_maps.items()}


def _acting(cluster: Cluster) -> Mapping[Resource, OptionalCache]:
    """Return the caches of what makes autoscalers act: ScaledObjects of KEDA, and the APIService."""
    return {
        SCALED_OBJECTS: OptionalCache(
            cluster, SCALED_OBJECTS, without="ScaledObjects: a minimum of 0 replicas is not known"
        ),
        API_SERVICES: OptionalCache(
            cluster,
            API_SERVICES,
            without="the APIService: it is not known who answers for external metrics",
            field_selector=f"metadata.name={API_SERVICE}",
        ),
    }


def _policies(cluster: Cluster, projection: Projection) -> tuple[OptionalCache, OptionalCache]:
    bindings = OptionalCache(
        cluster,
        AUTOSCALING_POLICY_BINDINGS,
        reduce=projection.with_writer,
        without="AutoscalingPolicyBindings",
    )
    return OptionalCache(cluster, AUTOSCALING_POLICIES, without="AutoscalingPolicies"), bindings


def _objectives(cluster: Cluster) -> tuple[OptionalCache, ...]:
    return (OptionalCache(cluster, INFERENCE_OBJECTIVES, without="InferenceObjectives"),)


def _pools(cluster: Cluster, *, is_former_read: bool) -> tuple[OptionalCache, ...]:
    """Return the caches of InferencePools; the permission for the former group comes with objectives."""
    return tuple(
        OptionalCache(cluster, resource, without=f"{resource.plural} of {resource.group}")
        for resource in (INFERENCE_POOLS, *([FORMER_INFERENCE_POOLS] if is_former_read else []))
    )


def _records(cluster: Cluster) -> tuple[OptionalCache, ...]:
    without, selector = "annotated autoscalers", f"metadata.name={DECISIONS}"
    return (OptionalCache(cluster, CONFIG_MAPS, without=without, field_selector=selector),)


def _dynamic(cluster: Cluster, projection: Projection) -> Mapping[Resource, OptionalCache]:
    """Return the caches of Dynamic Resource Allocation.

    They are used only if all are readable: without the claims, all devices would seem to be free.
    """
    kept = {
        RESOURCE_SLICES: projection.resource_slice,
        RESOURCE_CLAIMS: projection.resource_claim,
        RESOURCE_CLAIM_TEMPLATES: without_managed_fields,
        DEVICE_CLASSES: without_managed_fields,
    }
    without = "devices of Dynamic Resource Allocation"
    return {
        resource: OptionalCache(cluster, resource, reduce=reduce, without=without)
        for resource, reduce in kept.items()
    }
