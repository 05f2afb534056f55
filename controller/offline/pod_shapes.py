"""What planning reads of a pod and of any object's metadata."""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.meta import Quantity
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Length, Range


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
    generation: Maybe[int] = UNSET
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
class EmptyDirectory:
    """A directory that lives as long as its pod."""

    medium: Maybe[str] = UNSET


@declaration()
class Volume:
    """What a pod mounts."""

    name: str
    empty_dir: Maybe[EmptyDirectory] = UNSET


@declaration()
class LabelDemand:
    """Which pods are meant, by one label."""

    key: str
    operator: str
    values: Maybe[tuple[str, ...]] = UNSET


@declaration()
class PodSelector:
    """Which pods are meant."""

    match_labels: Maybe[dict[str, str]] = UNSET
    match_expressions: Maybe[tuple[LabelDemand, ...]] = UNSET


@declaration()
class SpreadSeen:
    """How evenly pods are to lie."""

    topology_key: str
    max_skew: Maybe[Annotated[int, Range(1)]] = UNSET
    when_unsatisfiable: Maybe[str] = UNSET
    label_selector: Maybe[PodSelector] = UNSET
    match_label_keys: Maybe[tuple[str, ...]] = UNSET
    min_domains: Maybe[Annotated[int, Range(1)]] = UNSET
    node_affinity_policy: Maybe[str] = UNSET


@declaration()
class ClaimOfPod:
    """A ResourceClaim that a pod names, or has made of a template."""

    name: str
    resource_claim_name: Maybe[str] = UNSET
    resource_claim_template_name: Maybe[str] = UNSET


@declaration()
class PodSpec:
    """What a pod is made of, and where it may run."""

    containers: Maybe[tuple[Container, ...]] = UNSET
    init_containers: Maybe[tuple[Container, ...]] = UNSET
    node_name: Maybe[str] = UNSET
    node_selector: Maybe[dict[str, str]] = UNSET
    tolerations: Maybe[tuple[TolerationSeen, ...]] = UNSET
    affinity: Maybe[Affinity] = UNSET
    volumes: Maybe[tuple[Volume, ...]] = UNSET
    topology_spread_constraints: Maybe[tuple[SpreadSeen, ...]] = UNSET
    priority: Maybe[int] = UNSET
    resource_claims: Maybe[tuple[ClaimOfPod, ...]] = UNSET


@declaration()
class ClaimMade:
    """The ResourceClaim that was made of a template."""

    name: str
    resource_claim_name: Maybe[str] = UNSET


@declaration()
class PodStatus:
    """How a pod fares."""

    phase: Maybe[str] = UNSET
    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET
    resource_claim_statuses: Maybe[tuple[ClaimMade, ...]] = UNSET
