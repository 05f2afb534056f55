"""What planning reads of what can be scaled."""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Range
from controller.offline.pod_shapes import Identified, Metadata, PodSpec


@declaration()
class TemplateMetadata:
    """What pods are labelled with."""

    labels: Maybe[dict[str, str]] = UNSET


@declaration()
class Template:
    """What pods are made of."""

    metadata: Maybe[TemplateMetadata] = UNSET
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
class StatefulSetSpec:
    """How many pods, of which template, and whether each has volumes of its own."""

    replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    template: Template
    volume_claim_templates: Maybe[tuple[Identified, ...]] = UNSET


@declaration()
class StatefulSet:
    """A StatefulSet."""

    metadata: Metadata
    spec: StatefulSetSpec


@declaration()
class GroupTemplate:
    """What a group of pods is made of."""

    size: Maybe[Annotated[int, Range(1)]] = UNSET
    leader_template: Maybe[Template] = UNSET
    worker_template: Template
    volume_claim_templates: Maybe[tuple[Identified, ...]] = UNSET


@declaration()
class LeaderWorkerSetSpec:
    """How many groups, and of what."""

    replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    leader_worker_template: GroupTemplate


@declaration()
class LeaderWorkerSet:
    """A LeaderWorkerSet."""

    metadata: Metadata
    spec: LeaderWorkerSetSpec
