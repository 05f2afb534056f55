"""What planning reads of objects that are not ours: enough to say what is wrong with a file, and where."""

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
from controller.offline.target_shapes import Deployment, LeaderWorkerSet, StatefulSet

GroupKind = tuple[str, str]


@declaration()
class Pod:
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: Maybe[PodStatus] = UNSET


@declaration()
class TaintSeen:
    """A refusal of pods."""

    key: str
    value: Maybe[str] = UNSET
    effect: str


@declaration()
class NodeSpec:
    """Who may use a node."""

    unschedulable: Maybe[bool] = UNSET
    taints: Maybe[tuple[TaintSeen, ...]] = UNSET


@declaration()
class NodeStatus:
    """What a node has."""

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
    """What an autoscaler scales."""

    api_version: Maybe[str] = UNSET
    kind: str
    name: str


@declaration()
class PaceSeen:
    """By how much an autoscaler changes at most, within which time."""

    type: Literal["Pods", "Percent"]
    value: Annotated[int, Range(1)]
    period_seconds: Annotated[int, Range(1)]


@declaration()
class RulesSeen:
    """How an autoscaler goes into one direction."""

    stabilization_window_seconds: Maybe[Annotated[int, Range(0)]] = UNSET
    select_policy: Maybe[Literal["Max", "Min", "Disabled"]] = UNSET
    policies: Maybe[tuple[PaceSeen, ...]] = UNSET
    tolerance: Maybe[Quantity] = UNSET


@declaration()
class BehaviorSeen:
    """How an autoscaler goes about it."""

    scale_up: Maybe[RulesSeen] = UNSET
    scale_down: Maybe[RulesSeen] = UNSET


@declaration()
class AutoscalerSpec:
    """Between which bounds an autoscaler scales, and how."""

    scale_target_ref: Target
    min_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    max_replicas: Annotated[int, Range(1)]
    behavior: Maybe[BehaviorSeen] = UNSET


@declaration()
class AutoscalerStatus:
    """What an autoscaler says of itself."""

    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET


@declaration()
class Autoscaler:
    """A HorizontalPodAutoscaler."""

    metadata: Metadata
    spec: AutoscalerSpec
    status: Maybe[AutoscalerStatus] = UNSET


@declaration()
class ScopeDemand:
    """Which pods a quota counts, by one scope."""

    scope_name: str
    operator: str
    values: Maybe[tuple[str, ...]] = UNSET


@declaration()
class ScopeSelector:
    """Which pods a quota counts."""

    match_expressions: Maybe[tuple[ScopeDemand, ...]] = UNSET


@declaration()
class QuotaSpec:
    """What a namespace may have at most."""

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
    """What a node pool asks of its machines."""

    key: str
    operator: str
    values: Maybe[tuple[str, ...]] = UNSET


@declaration()
class MachineSpec:
    """What a node pool's machines are like."""

    requirements: Maybe[tuple[MachineDemand, ...]] = UNSET
    taints: Maybe[tuple[TaintSeen, ...]] = UNSET


@declaration()
class MachineMetadata:
    """What a node pool's machines are labelled with."""

    labels: Maybe[dict[str, str]] = UNSET


@declaration()
class Machine:
    """What a node pool makes nodes of."""

    metadata: Maybe[MachineMetadata] = UNSET
    spec: MachineSpec


@declaration()
class NodePoolSpec:
    """How many nodes of which kind there may be."""

    template: Machine
    limits: Maybe[dict[str, Quantity]] = UNSET


@declaration()
class NodePool:
    """A NodePool of Karpenter."""

    metadata: Metadata
    spec: NodePoolSpec


@declaration()
class DisruptionSpec:
    """What a budget protects."""

    selector: Maybe[PodSelector] = UNSET


@declaration()
class DisruptionStatus:
    """What a budget allows now."""

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
    """The pool of an objective."""

    group: Maybe[str] = UNSET
    kind: Maybe[str] = UNSET
    name: str


@declaration()
class ObjectiveSpec:
    """How important requests to a pool are."""

    priority: Maybe[int] = UNSET
    pool_ref: PoolReferenceSeen


@declaration()
class Objective:
    """An InferenceObjective."""

    metadata: Metadata
    spec: Maybe[ObjectiveSpec] = UNSET


@declaration()
class PoolSpec:
    """Which pods a pool has."""

    selector: Maybe[PodSelector] = UNSET


@declaration()
class Pool:
    """An InferencePool."""

    metadata: Metadata
    spec: PoolSpec


@declaration()
class FormerPoolSpec:
    """Which pods a pool of the former group has: by labels alone."""

    selector: Maybe[dict[str, str]] = UNSET


@declaration()
class FormerPool:
    """An InferencePool of the former group."""

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
