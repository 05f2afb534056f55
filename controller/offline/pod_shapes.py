"""The fields that planning reads of pods and of any object's metadata."""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.meta import Quantity
from apiserver.schema import errors, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Length, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly
from controller.observe.accelerators import RESOURCE_NAMES


@declaration()
class Owner:
    """An owner reference."""

    kind: str
    name: str
    controller: Maybe[bool] = UNSET


@declaration()
class Metadata:
    """The metadata of an object."""

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
    """A condition of a status."""

    type: str
    status: str


def _whole_accelerators(value: Json, path: FieldPath) -> list[FieldError]:
    return [
        errors.invalid(path.child(member).key(name), quantity, "must be an integer")
        for member in ("limits", "requests")
        for name, quantity in (value.get(member) or {}).items()
        if name in RESOURCE_NAMES
        and (amount := quantities.amount(quantity)) is not None
        and amount != amount.to_integral_value()
    ]


@declaration(WebhookOnly(_whole_accelerators, "Numbers of accelerators are integers."))
class Resources:
    """The resources of a container."""

    limits: Maybe[dict[str, Quantity]] = UNSET
    requests: Maybe[dict[str, Quantity]] = UNSET


@declaration()
class Container:
    """A container of a pod."""

    command: Maybe[tuple[str, ...]] = UNSET
    args: Maybe[tuple[str, ...]] = UNSET
    resources: Maybe[Resources] = UNSET


@declaration()
class TolerationSeen:
    """A toleration of taints."""

    key: Maybe[str] = UNSET
    operator: Maybe[str] = UNSET
    value: Maybe[str] = UNSET
    effect: Maybe[str] = UNSET


@declaration()
class EmptyDirectory:
    """An emptyDir volume."""

    medium: Maybe[str] = UNSET


@declaration()
class Volume:
    """A volume of a pod."""

    name: str
    empty_dir: Maybe[EmptyDirectory] = UNSET


@declaration()
class LabelDemand:
    """A label selector requirement."""

    key: str
    operator: str
    values: Maybe[tuple[str, ...]] = UNSET


@declaration()
class PodSelector:
    """A label selector for pods."""

    match_labels: Maybe[dict[str, str]] = UNSET
    match_expressions: Maybe[tuple[LabelDemand, ...]] = UNSET


@declaration()
class SpreadSeen:
    """A topology spread constraint."""

    topology_key: str
    max_skew: Maybe[Annotated[int, Range(1)]] = UNSET
    when_unsatisfiable: Maybe[str] = UNSET
    label_selector: Maybe[PodSelector] = UNSET
    match_label_keys: Maybe[tuple[str, ...]] = UNSET
    min_domains: Maybe[Annotated[int, Range(1)]] = UNSET
    node_affinity_policy: Maybe[str] = UNSET


@declaration()
class ClaimOfPod:
    """A ResourceClaim that a pod names, or a template from which it is created."""

    name: str
    resource_claim_name: Maybe[str] = UNSET
    resource_claim_template_name: Maybe[str] = UNSET


@declaration()
class PodSpec:
    """The specification of a pod."""

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
    """The ResourceClaim that was created from a template."""

    name: str
    resource_claim_name: Maybe[str] = UNSET


@declaration()
class PodStatus:
    """The status of a pod."""

    phase: Maybe[str] = UNSET
    conditions: Maybe[tuple[ConditionSeen, ...]] = UNSET
    resource_claim_statuses: Maybe[tuple[ClaimMade, ...]] = UNSET
