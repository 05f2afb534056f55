"""What one object asks of planning: decisions on the replicas of one scale target. Frozen records.

Each source of variants fills it beside what it reads: `variantautoscaling`, `annotated` and `asks`. Nothing
else reads these objects, except to write a status or an event on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.overrides import Orders
from controller.observe.targets import TargetKey
from controller.observe.unplanned import Unplanned
from controller.planning.load import Capacity
from controller.sizing.records import Learned, Profile

Place = tuple[str, str]
"""Where a service class is defined: ConfigMap name and key."""


class OwnerKind(StrEnum):
    """The kinds of objects that request decisions."""

    VARIANT = "VariantAutoscaling"
    BINDING = "AutoscalingPolicyBinding"
    HORIZONTAL_POD_AUTOSCALER = "HorizontalPodAutoscaler"
    SCALED_OBJECT = "ScaledObject"

    @property
    def short_name(self) -> str:
        """The name of the kind in commands."""
        return _SHORT_NAMES[self]


_SHORT_NAMES: Final[Mapping[OwnerKind, str]] = {
    OwnerKind.VARIANT: "va",
    OwnerKind.BINDING: "aspb",
    OwnerKind.HORIZONTAL_POD_AUTOSCALER: "hpa",
    OwnerKind.SCALED_OBJECT: "so",
}


class Owner(NamedTuple):
    """The identity of an object that requests decisions."""

    kind: OwnerKind
    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What one object says about one variant, and what was published about it before."""

    owner: Owner
    name: str
    """Name of the variant: that of its owner, or for one of several targets both names with a slash."""

    created: str = ""
    """Creation timestamp of the owner; empty if unknown, as in files."""

    model_id: str
    target: TargetKey
    accelerator: str = ""
    """Declared type, normalized; empty if none is."""

    accelerator_count: int | None = None
    cost: Decimal | None = None
    """Cost of one replica that its writer chose; None if there is none, or only the default."""

    service_class: Place | None = None
    orders: Orders = field(default_factory=Orders)
    writer: str | None = None
    """The user who wrote the owner, as an access review needs it; None if none is recorded."""

    published_replicas: int | None = None
    """The last published decision; None before the first, and for advice."""

    profile: Profile | None = None
    learned: Learned | None = None
    known_start_seconds: float | None = None
    """Start-up time of a replica as published before."""

    bounds: tuple[int, int | None] = (0, None)
    """Least and most replicas by its owner; beside those of its autoscalers, the narrower ones apply."""

    may_scale_to_zero: bool = False
    """Whether its owner allows that no replica is left, whatever the setting for all."""

    capacity: Capacity | None = None
    """Capacity of one replica, if its owner states it."""

    problems: tuple[str, ...] = ()
    """What the owner says and cannot be used, in sentences."""

    @property
    def key(self) -> Key:
        """Namespace and name of the variant."""
        return self.owner.namespace, self.name

    @property
    def model(self) -> Key:
        """Namespace and ID of its model."""
        return self.owner.namespace, self.model_id

    @property
    def is_bound(self) -> bool:
        """Whether a binding requests it: a policy determines its load, and another cycle publishes it."""
        return self.owner.kind is OwnerKind.BINDING

    @property
    def is_annotated(self) -> bool:
        """Whether an annotated autoscaler requests it."""
        return self.owner.kind in (OwnerKind.HORIZONTAL_POD_AUTOSCALER, OwnerKind.SCALED_OBJECT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimant:
    """An object that requests a decision on one variant, and to which the cycle of the plan reports it."""

    key: Key
    """Namespace and name of the variant."""

    value: Json
    """The raw object, for events on it; it may be malformed."""

    status: Json
    """What was published: the status of a VariantAutoscaling, the record of an annotated autoscaler."""

    labels: Mapping[str, str]
    """The labels of its external metrics; empty if it has none, because another object has its name."""

    is_annotated: bool = False
    is_stored: bool = True
    """Whether the store has what was published: a record can be edited, and its labels can be outdated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """The claims of some objects, and why those of others cannot be read."""

    readable: tuple[Claim, ...] = ()
    unplanned: Mapping[Key, Unplanned] = field(default_factory=dict)
    claimants: tuple[Claimant, ...] = ()
    """The objects to which the cycle of the plan reports, readable or not: all but bindings."""

    def __or__(self, other: Claims) -> Claims:
        return Claims(
            readable=self.readable + other.readable,
            unplanned={**self.unplanned, **other.unplanned},
            claimants=self.claimants + other.claimants,
        )

    def by_precedence(self) -> Sequence[Claim]:
        """Return the readable claims: annotated autoscalers last, otherwise the oldest first.

        Of those of one age, the first name comes first.
        """
        return sorted(self.readable, key=lambda claim: (claim.is_annotated, claim.created, claim.key))
