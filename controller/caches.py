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
from controller.observe.devices import NOTHING_FURTHER, DeviceTranslator, FurtherAccelerators
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

_DYNAMIC_RESOURCES: Final = (RESOURCE_SLICES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, DEVICE_CLASSES)
_POOLS: Final = (INFERENCE_POOLS, FORMER_INFERENCE_POOLS)
_NEEDED: Final = (VARIANT_AUTOSCALINGS, DEPLOYMENTS, STATEFUL_SETS, PODS, NODES, HORIZONTAL_POD_AUTOSCALERS)
_OPTIONAL: Final[Mapping[Resource, str]] = {
    **dict.fromkeys(_DYNAMIC_RESOURCES, "devices of Dynamic Resource Allocation"),
    INFERENCE_OBJECTIVES: "InferenceObjectives",
    **{resource: f"{resource.plural} of {resource.group}" for resource in _POOLS},
    CONFIG_MAPS: "annotated autoscalers",
    AUTOSCALING_POLICIES: "AutoscalingPolicies",
    AUTOSCALING_POLICY_BINDINGS: "AutoscalingPolicyBindings",
    LEADER_WORKER_SETS: "LeaderWorkerSets",
    SCALED_OBJECTS: "ScaledObjects: a minimum of 0 replicas is not known",
    API_SERVICES: "the APIService: it is not known who answers for external metrics",
    RESOURCE_QUOTAS: "quotas",
    NODE_POOLS: "the node pools of Karpenter",
    DISRUPTION_BUDGETS: "disruption budgets: evictions still respect them, preemption does not",
}
"""What is read where it can be, each with what is missing without it. ConfigMaps are those with decisions."""

_SELECTORS: Final = {CONFIG_MAPS: f"metadata.name={DECISIONS}", API_SERVICES: f"metadata.name={API_SERVICE}"}
_LASTING: Final = (
    *_DYNAMIC_RESOURCES,
    INFERENCE_OBJECTIVES,
    *_POOLS,
    CONFIG_MAPS,
    AUTOSCALING_POLICIES,
    AUTOSCALING_POLICY_BINDINGS,
)
"""What must not seem to be gone because a watch failed, such as the devices of nodes, and bindings."""

_WORKLOADS: Final = (
    (TargetKind.DEPLOYMENT, DEPLOYMENTS),
    (TargetKind.STATEFUL_SET, STATEFUL_SETS),
    (TargetKind.LEADER_WORKER_SET, LEADER_WORKER_SETS),
)


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
        self._objective_rules = objectives
        projection = Projection()
        reductions = {
            **dict.fromkeys((VARIANT_AUTOSCALINGS, AUTOSCALING_POLICY_BINDINGS), projection.with_writer),
            **dict.fromkeys((DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS), projection.workload),
            PODS: projection.pod,
            NODES: projection.node,
            RESOURCE_SLICES: projection.resource_slice,
            RESOURCE_CLAIMS: projection.resource_claim,
        }
        unread = {CONFIG_MAPS} if not annotated else set()
        if not objectives.are_in_force:
            unread |= {INFERENCE_OBJECTIVES, FORMER_INFERENCE_POOLS}  # the permission comes with objectives
        self._needed = {
            resource: Cache(cluster, resource, reduce=reductions.get(resource, without_managed_fields))
            for resource in _NEEDED
        }
        self._optional = {
            resource: OptionalCache(
                cluster,
                resource,
                reduce=reductions.get(resource, without_managed_fields),
                without=without,
                field_selector=_SELECTORS.get(resource),
            )
            for resource, without in _OPTIONAL.items()
            if resource not in unread
        }
        self._scales = ScaleReader(cluster, self._references, silent_seconds=SILENT_SECONDS)
        self._config_maps = Cache(cluster, CONFIG_MAPS, namespace=namespace, reduce=without_managed_fields)
        self._all = (*self._needed.values(), self._config_maps)

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self._all:
                group.create_task(cache.run())
            for optional in self._optional.values():
                group.create_task(optional.run())
            group.create_task(self._scales.run())

    async def wait_until_synced(self) -> None:
        """Wait until every initial list is complete."""
        for cache in self._all:
            await cache.synced.wait()
        for optional in self._optional.values():
            await optional.settled.wait()

    def why_not_current(self) -> str | None:
        """Return which cache is missing or too old to decide on, or None."""
        needed = (cache.why_not_current(within_seconds=SILENT_SECONDS) for cache in self._all)
        # Without objectives, only the queues of endpoint pickers are looked up in pools.
        ignored = () if self._objective_rules.are_in_force else _POOLS
        lasting = (self._optional[item] for item in _LASTING if item in self._optional.keys() - ignored)
        return next(filter(None, (*needed, *(cache.why_lost() for cache in lasting))), None)

    def world(self) -> World:
        """Return the current state, with devices and claims translated into extended resources."""
        dynamic = self._translation()
        scaled = self._scales.last_scales(self._items(PODS))
        return World(
            autoscalings=self._items(VARIANT_AUTOSCALINGS),
            targets={key: dynamic.workload(item) for key, item in scaled.workloads.items()}
            | {
                TargetKey(kind, *key_of(item)): dynamic.workload(item)
                for kind, resource in _WORKLOADS
                for item in self._items(resource)
            },
            pods=tuple(map(dynamic.pod, scaled.pods)),
            nodes=tuple(map(dynamic.node, self._items(NODES))),
            autoscalers=self._items(HORIZONTAL_POD_AUTOSCALERS),
            scaled_objects=self._items(SCALED_OBJECTS),
            quotas=self._items(RESOURCE_QUOTAS),
            node_pools=self._items(NODE_POOLS),
            disruption_budgets=self._items(DISRUPTION_BUDGETS),
            inference_pools=self._inference_pools(),
            records=self._decision_records(),
            unread=scaled.unread,
            bound=bound_targets(self._items(AUTOSCALING_POLICY_BINDINGS)),
        )

    def bound_world(self) -> BoundWorld:
        """Return the current state of everything that decisions on bindings depend on."""
        bindings = self._items(AUTOSCALING_POLICY_BINDINGS)
        scaled = self._scales.last_scales(self._items(PODS)) if bindings else None
        known = {key: self._scales.last_scale(key) for key in scaled_targets(bound_references(bindings))}
        return BoundWorld(
            policies=self._items(AUTOSCALING_POLICIES),
            bindings=bindings,
            autoscalings=self._items(VARIANT_AUTOSCALINGS),
            autoscalers=self._items(HORIZONTAL_POD_AUTOSCALERS),
            scaled_objects=self._items(SCALED_OBJECTS),
            replicas={key: scale.replicas for key, scale in known.items() if isinstance(scale, Scale)}
            | {
                TargetKey(kind, *key_of(item)): asked_replicas(item)
                for kind, resource in _WORKLOADS
                for item in self._items(resource)
            },
            unread={key: scale for key, scale in known.items() if isinstance(scale, str)},
            pods=scaled.pods if scaled else (),
        )

    def external_metrics(self) -> ExternalMetrics:
        """Return the state of the external metrics API."""
        cache = self._optional[API_SERVICES]
        if not cache.is_readable or cache.why_lost():
            return UNKNOWN_METRICS
        return external_metrics_of(cache.items())

    def objectives(self) -> Objectives:
        """Return the InferenceObjectives that count now."""
        return self._objective_rules.applicable(self._items(INFERENCE_OBJECTIVES), self._inference_pools())

    async def scalable(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a scalable kind, or None. Raises ClusterError if discovery fails."""
        return await self._scales.resource(api_version, kind)

    def _inference_pools(self) -> Sequence[Json]:
        return [item for resource in _POOLS for item in self._items(resource)]

    def _items(self, resource: Resource) -> Sequence[Json]:
        """Return the objects of a kind; none while they cannot be read, or are not."""
        cache = self._needed.get(resource, self._optional.get(resource))
        return () if cache is None else cache.items()

    def _references(self) -> Sequence[ScaleReference]:
        """Return the references of the objects that are planned to their targets."""
        own = (
            *scale_references(self._items(VARIANT_AUTOSCALINGS)),
            *bound_references(self._items(AUTOSCALING_POLICY_BINDINGS)),
        )
        if CONFIG_MAPS not in self._optional:
            return own
        scaled_objects = self._items(SCALED_OBJECTS)
        return (*own, *annotated_references(self._items(HORIZONTAL_POD_AUTOSCALERS), scaled_objects))

    def _decision_records(self) -> Records | None:
        """Return what was published about annotated autoscalers; None if they are not planned."""
        cache = self._optional.get(CONFIG_MAPS)
        if cache is None or not cache.is_readable:
            return None
        return {item["metadata"]["namespace"]: item.get("data") or {} for item in cache.items()}

    def _translation(self) -> DeviceTranslator:
        # Without the claims, for instance, all devices would seem to be free.
        if not all(self._optional[resource].is_readable for resource in _DYNAMIC_RESOURCES):
            return DeviceTranslator(further=self._further)
        return DeviceTranslator(
            further=self._further,
            slices=self._items(RESOURCE_SLICES),
            claims=self._items(RESOURCE_CLAIMS),
            templates=self._items(RESOURCE_CLAIM_TEMPLATES),
            classes=self._items(DEVICE_CLASSES),
        )

    def named_config_maps(self) -> frozenset[str]:
        """Return the names of the ConfigMaps in which variants and bindings look up their service class."""
        specs = (item.get("spec") for item in self._items(VARIANT_AUTOSCALINGS))
        references = (spec.get("sloClassRef") for spec in specs if isinstance(spec, dict))
        names = {str(item.get("name")) for item in references if isinstance(item, dict)}
        noted = (
            item["metadata"].get("annotations") or {} for item in self._items(AUTOSCALING_POLICY_BINDINGS)
        )
        classes = (annotations.get(SERVICE_CLASS) for annotations in noted)
        return frozenset(names | {str(text).partition("/")[0] for text in classes if text})

    def config_maps(self) -> Mapping[str, Json]:
        """Return the ConfigMaps of our own namespace by name."""
        return {item["metadata"]["name"]: item for item in self._config_maps.items()}
