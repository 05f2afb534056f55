"""The fields that planning reads of scale targets."""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Range
from controller.offline.pod_shapes import Identified, Metadata, PodSpec


@declaration()
class TemplateMetadata:
    """The labels of a template, of pods or of nodes."""

    labels: Maybe[dict[str, str]] = UNSET


@declaration()
class Template:
    """A pod template."""

    metadata: Maybe[TemplateMetadata] = UNSET
    spec: PodSpec


@declaration()
class DeploymentSpec:
    """The replicas and the pod template of a Deployment."""

    replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    template: Template


@declaration()
class Deployment:
    """A Deployment."""

    metadata: Metadata
    spec: DeploymentSpec


@declaration()
class StatefulSetSpec:
    """The replicas, the pod template and the volume claim templates of a StatefulSet."""

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
    """The template of a group of pods."""

    size: Maybe[Annotated[int, Range(1)]] = UNSET
    leader_template: Maybe[Template] = UNSET
    worker_template: Template
    volume_claim_templates: Maybe[tuple[Identified, ...]] = UNSET


@declaration()
class LeaderWorkerSetSpec:
    """The replicas and the group template of a LeaderWorkerSet."""

    replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    leader_worker_template: GroupTemplate


@declaration()
class LeaderWorkerSet:
    """A LeaderWorkerSet."""

    metadata: Metadata
    spec: LeaderWorkerSetSpec
