"""The fields that planning reads of other projects' kinds, for validation with a place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from apiserver.kinds.inference.inferenceobjective import FORMER_POOL_GROUP, POOL_GROUP, POOL_KIND
from apiserver.kinds.meta import Quantity
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Range
from controller.offline.device_shapes import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from controller.offline.pod_shapes import (
    ConditionSeen,
    Identified,
    Metadata,
    PodSelector,
    PodSpec,
    PodStatus,
)
from controller.offline.target_shapes import Deployment, LeaderWorkerSet, StatefulSet, TemplateMetadata

GroupKind = tuple[str, str]


@declaration()
class Pod:
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: Maybe[PodStatus] = UNSET


@declaration()
class TaintSeen:
    """A taint of a node."""

    key: str
    value: Maybe[str] = UNSET
    effect: str


@declaration()
class NodeSpec:
    """The taints and schedulability of a node."""

    unschedulable: Maybe[bool] = UNSET
    taints: Maybe[tuple[TaintSeen, ...]] = UNSET


@declaration()
class NodeStatus:
    """The resources and conditions of a node."""

    allocatable: Maybe[dict[str, Quantity]] = UNSET
    capacity: Maybe[dict[str, Quantity]] = UNSET
    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET


@declaration()
class Node:
    """A node."""

    metadata: Metadata
    spec: Maybe[NodeSpec] = UNSET
    status: Maybe[NodeStatus] = UNSET


@declaration()
class ConfigMap:
    """A ConfigMap."""

    metadata: Metadata
    data: Maybe[dict[str, str]] = UNSET


@declaration()
class Target:
    """The scale target of an autoscaler."""

    api_version: Maybe[str] = UNSET
    kind: str
    name: str


@declaration()
class PaceSeen:
    """A scaling policy of an autoscaler: the maximum change within a period."""

    type: Literal["Pods", "Percent"]
    value: Annotated[int, Range(1)]
    period_seconds: Annotated[int, Range(1)]


@declaration()
class RulesSeen:
    """The scaling rules of an autoscaler for one direction."""

    stabilization_window_seconds: Maybe[Annotated[int, Range(0)]] = UNSET
    select_policy: Maybe[Literal["Max", "Min", "Disabled"]] = UNSET
    policies: Maybe[tuple[PaceSeen, ...]] = UNSET
    tolerance: Maybe[Quantity] = UNSET


@declaration()
class BehaviorSeen:
    """The scaling behavior of an autoscaler."""

    scale_up: Maybe[RulesSeen] = UNSET
    scale_down: Maybe[RulesSeen] = UNSET


@declaration()
class AutoscalerSpec:
    """The target, limits and behavior of an autoscaler."""

    scale_target_ref: Target
    min_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    max_replicas: Annotated[int, Range(1)]
    behavior: Maybe[BehaviorSeen] = UNSET


@declaration()
class AutoscalerStatus:
    """The status of an autoscaler."""

    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET


@declaration()
class Autoscaler:
    """A HorizontalPodAutoscaler."""

    metadata: Metadata
    spec: AutoscalerSpec
    status: Maybe[AutoscalerStatus] = UNSET


@declaration()
class ScaledTarget:
    """The scale target of a ScaledObject."""

    api_version: Maybe[str] = UNSET
    kind: Maybe[str] = UNSET
    name: str


@declaration()
class ScaledObjectSpec:
    """The target and limits of a ScaledObject."""

    scale_target_ref: ScaledTarget
    min_replica_count: Maybe[Annotated[int, Range(0)]] = UNSET
    max_replica_count: Maybe[Annotated[int, Range(0)]] = UNSET


@declaration()
class ScaledObject:
    """A ScaledObject of KEDA."""

    metadata: Metadata
    spec: ScaledObjectSpec


@declaration()
class ScopeDemand:
    """A condition on one scope of the pods that a quota counts."""

    scope_name: str
    operator: str
    values: Maybe[tuple[str, ...]] = UNSET


@declaration()
class ScopeSelector:
    """The conditions on the scopes of the pods that a quota counts."""

    match_expressions: Maybe[tuple[ScopeDemand, ...]] = UNSET


@declaration()
class QuotaSpec:
    """The limits of a quota and the pods that it counts."""

    hard: Maybe[dict[str, Quantity]] = UNSET
    scopes: Maybe[tuple[str, ...]] = UNSET
    scope_selector: Maybe[ScopeSelector] = UNSET


@declaration()
class Quota:
    """A ResourceQuota."""

    metadata: Metadata
    spec: QuotaSpec


@declaration()
class MachineDemand:
    """A requirement of a node pool for its nodes."""

    key: str
    operator: str
    values: Maybe[tuple[str, ...]] = UNSET


@declaration()
class MachineSpec:
    """The requirements and taints of a node pool's nodes."""

    requirements: Maybe[tuple[MachineDemand, ...]] = UNSET
    taints: Maybe[tuple[TaintSeen, ...]] = UNSET


@declaration()
class Machine:
    """The template of a node pool's nodes."""

    metadata: Maybe[TemplateMetadata] = UNSET
    spec: MachineSpec


@declaration()
class NodePoolSpec:
    """The template and limits of a node pool."""

    template: Machine
    limits: Maybe[dict[str, Quantity]] = UNSET
    replicas: Maybe[Annotated[int, Range(0)]] = UNSET


@declaration()
class NodePoolStatus:
    """The conditions of a node pool."""

    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET


@declaration()
class NodePool:
    """A NodePool of Karpenter."""

    metadata: Metadata
    spec: NodePoolSpec
    status: Maybe[NodePoolStatus] = UNSET


@declaration()
class DisruptionSpec:
    """The pods that a disruption budget protects."""

    selector: Maybe[PodSelector] = UNSET


@declaration()
class DisruptionStatus:
    """The disruptions that a budget allows now."""

    disruptions_allowed: Maybe[Annotated[int, Range(0)]] = UNSET
    observed_generation: Maybe[int] = UNSET


@declaration()
class DisruptionBudget:
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: DisruptionSpec
    status: Maybe[DisruptionStatus] = UNSET


@declaration()
class PoolReferenceSeen:
    """The pool of an InferenceObjective."""

    group: Maybe[str] = UNSET
    kind: Maybe[str] = UNSET
    name: str


@declaration()
class ObjectiveSpec:
    """The priority of requests to a pool."""

    priority: Maybe[int] = UNSET
    pool_ref: PoolReferenceSeen


@declaration()
class Objective:
    """An InferenceObjective."""

    metadata: Metadata
    spec: Maybe[ObjectiveSpec] = UNSET


@declaration()
class PoolSpec:
    """The pods of a pool."""

    selector: Maybe[PodSelector] = UNSET


@declaration()
class Pool:
    """An InferencePool."""

    metadata: Metadata
    spec: PoolSpec


@declaration()
class FormerPoolSpec:
    """The pods of a pool in the former API group, which selects by labels only."""

    selector: Maybe[dict[str, str]] = UNSET


@declaration()
class FormerPool:
    """An InferencePool of the former API group."""

    metadata: Metadata
    spec: FormerPoolSpec


SHAPES: Final[Mapping[GroupKind, type]] = {
    ("llmd.ai", "VariantAutoscaling"): Identified,
    ("apps", "Deployment"): Deployment,
    ("apps", "StatefulSet"): StatefulSet,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): LeaderWorkerSet,
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    ("", "ConfigMap"): ConfigMap,
    ("autoscaling", "HorizontalPodAutoscaler"): Autoscaler,
    ("keda.sh", "ScaledObject"): ScaledObject,
    ("", "ResourceQuota"): Quota,
    ("karpenter.sh", "NodePool"): NodePool,
    ("policy", "PodDisruptionBudget"): DisruptionBudget,
    ("resource.k8s.io", "ResourceSlice"): ResourceSlice,
    ("resource.k8s.io", "ResourceClaim"): ResourceClaim,
    ("resource.k8s.io", "ResourceClaimTemplate"): ResourceClaimTemplate,
    ("resource.k8s.io", "DeviceClass"): DeviceClass,
    (FORMER_POOL_GROUP, "InferenceObjective"): Objective,
    (POOL_GROUP, POOL_KIND): Pool,
    (FORMER_POOL_GROUP, POOL_KIND): FormerPool,
}
"""The kinds that are read."""
