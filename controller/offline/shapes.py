"""What planning reads of objects that are not ours: enough to say what is wrong with a file, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from apiserver.kinds.meta import Quantity
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Length, Range

GroupKind = tuple[str, str]


@declaration()
class Owner:
    """Who made an object."""

    kind: str
    name: str
    controller: Maybe[bool] = UNSET


@declaration()
class Metadata:
    """What identifies an object."""

    name: Annotated[str, Length(1, 253)]
    namespace: Maybe[Annotated[str, Length(1, 63)]] = UNSET
    labels: Maybe[dict[str, str]] = UNSET
    annotations: Maybe[dict[str, str]] = UNSET
    owner_references: Maybe[tuple[Owner, ...]] = UNSET


@declaration()
class Identified:
    """Any object."""

    metadata: Metadata


@declaration()
class ConditionSeen:
    """One aspect of a status."""

    type: str
    status: str


@declaration()
class Resources:
    """What a container asks for."""

    limits: Maybe[dict[str, Quantity]] = UNSET
    requests: Maybe[dict[str, Quantity]] = UNSET


@declaration()
class Container:
    """What runs in a pod."""

    command: Maybe[tuple[str, ...]] = UNSET
    args: Maybe[tuple[str, ...]] = UNSET
    resources: Maybe[Resources] = UNSET


@declaration()
class TolerationSeen:
    """A consent to taints."""

    key: Maybe[str] = UNSET
    operator: Maybe[str] = UNSET
    value: Maybe[str] = UNSET
    effect: Maybe[str] = UNSET


@declaration()
class PodSpec:
    """What a pod is made of, and where it may run."""

    containers: Maybe[tuple[Container, ...]] = UNSET
    init_containers: Maybe[tuple[Container, ...]] = UNSET
    node_name: Maybe[str] = UNSET
    node_selector: Maybe[dict[str, str]] = UNSET
    tolerations: Maybe[tuple[TolerationSeen, ...]] = UNSET


@declaration()
class PodStatus:
    """How a pod fares."""

    phase: Maybe[str] = UNSET
    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET


@declaration()
class Pod:
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: Maybe[PodStatus] = UNSET


@declaration()
class Template:
    """What a Deployment makes pods of."""

    spec: PodSpec


@declaration()
class DeploymentSpec:
    """How many pods, and of which template."""

    replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    template: Template


@declaration()
class Deployment:
    """A Deployment."""

    metadata: Metadata
    spec: DeploymentSpec


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

    kind: str
    name: str


@declaration()
class AutoscalerSpec:
    """Between which bounds an autoscaler scales."""

    scale_target_ref: Target
    min_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    max_replicas: Annotated[int, Range(1)]


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


SHAPES: Final[Mapping[GroupKind, type]] = {
    ("llmd.ai", "VariantAutoscaling"): Identified,
    ("apps", "Deployment"): Deployment,
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    ("", "ConfigMap"): ConfigMap,
    ("autoscaling", "HorizontalPodAutoscaler"): Autoscaler,
}
"""The kinds that are read."""
