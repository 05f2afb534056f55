"""What one object asks of planning: decisions on the replicas of one scale target; and why it has none.

`declarations` and `binding_claims` fill these records beside what they read. Nothing else reads the objects,
except to write a status or an event on them. An error in reading one of them sets only that one aside. An
invalid order of a user is not followed, and reported: the variant is planned as if it were absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.activity import ActivitySource, activity_problems, activity_source
from apiserver.kinds.annotated import MANAGED
from apiserver.kinds.annotations import (
    ADVISORY,
    ALLOWED,
    PAUSED,
    PREEMPTION,
    PREFILL_PER_DECODE,
    PREFIX,
    RECORDS,
    REPLICAS,
    UNDERSTOOD,
    annotation_advice,
    is_allowed,
    prefill_per_decode,
)
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason, Finding
from controller.observe.targets import ScaleTarget, TargetKey, TargetKind, UnplannableTargetError
from controller.planning.load import Capacity
from controller.sizing.records import LearnedProfile, Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class Orders:
    """The orders of one object, and the invalid ones."""

    is_paused: bool = False
    pinned_replicas: int | None = None
    may_be_preempted: bool = True
    is_advisory: bool = False
    prefill_per_decode: tuple[float, float] | None = None
    """Least and most replicas of prefill per replica of decode."""

    activity: ActivitySource | None = None
    """Where requests are visible while there are no replicas."""

    followed: tuple[str, ...] = ()
    """Valid annotations, as `name=value`."""

    problems: tuple[str, ...] = ()
    """One sentence for each invalid annotation of Stowplan's."""


def orders_of(value: Json, kind: str = "VariantAutoscaling") -> Orders:
    """Return the orders in the annotations of one object of a kind."""
    ours = own_annotations(value)
    own = UNDERSTOOD.get(kind, ())
    good = {name: text for name, text in ours.items() if name in own and _is_understood(name, text, value)}
    return Orders(
        is_paused=good.get(PAUSED) == "true",
        pinned_replicas=int(good[REPLICAS]) if REPLICAS in good else None,
        may_be_preempted=PREEMPTION not in good,
        is_advisory=good.get(ADVISORY) == "true",
        prefill_per_decode=prefill_per_decode(good.get(PREFILL_PER_DECODE, "")),
        activity=activity_source(value),
        followed=tuple(f"{name}={text}" for name, text in good.items()),
        problems=tuple(annotation_advice(kind, value)),
    )


def own_annotations(value: Json) -> dict[str, str]:
    """Return Stowplan's annotations of an object, sorted by name, without records."""
    annotations = value["metadata"].get("annotations") or {}
    return {
        name: str(text)
        for name, text in sorted(annotations.items())
        if name.startswith(PREFIX) and name not in RECORDS
    }


def orders_finding(orders: Orders) -> Finding:
    """Return whether all orders are valid, with a reason and a message."""
    if orders.problems:
        return False, ConditionReason.ANNOTATION_NOT_UNDERSTOOD, "; ".join(orders.problems)
    if orders.followed:
        return True, ConditionReason.ANNOTATIONS_FOLLOWED, f"followed: {', '.join(orders.followed)}"
    return True, ConditionReason.NO_ANNOTATIONS, f"no annotation {PREFIX}... has an effect"


def _is_understood(name: str, text: str, value: Json) -> bool:
    if name == ACTIVITY:
        return not activity_problems(value)
    return name in ALLOWED and is_allowed(name, text)


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
    learned: LearnedProfile | None = None
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
    unplanned: Mapping[Key, Exclusion] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a claim is not planned, as a reason and a message."""

    reason: ConditionReason
    message: str
    fault: Exception | None = field(default=None, compare=False)
    """An error that no check foresaw, to be logged with its traceback."""


def faulty(error: Exception) -> Exclusion:
    """Return the result for an object that caused an unforeseen error."""
    text = f"{type(error).__name__} in the controller: its log has the details"
    return Exclusion(ConditionReason.INVALID_CONFIGURATION, text, error)


def unplanned_by(error: Exception) -> Exclusion:
    """Return the result for an object that could not be read; a ValueError says what is wrong with it."""
    if isinstance(error, ValueError):
        return Exclusion(ConditionReason.INVALID_CONFIGURATION, str(error))
    return faulty(error)


def unplanned_target(key: TargetKey, error: Exception) -> Exclusion:
    """Return the result for a claim whose target could not be read."""
    cause, text = unplanned_by(error), f"{key.kind_text} {key.name!r} cannot be planned"
    is_foreseen = isinstance(error, UnplannableTargetError)
    reason = ConditionReason.TARGET_NOT_SUPPORTED if is_foreseen else cause.reason
    return Exclusion(reason, f"{text}: {cause.message}", cause.fault)


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacles:
    """What prevents the planning of claims, as far as that does not depend on pods."""

    targets: Mapping[TargetKey, ScaleTarget | Exclusion]
    """All targets, or why they cannot be planned."""

    unread: Mapping[TargetKey, str]
    """Why targets that are known only by their scale could not be read."""

    bound: Mapping[TargetKey, tuple[str, Key]]
    """The oldest binding that claims each target, with its creation timestamp."""

    bound_models: AbstractSet[Key]
    """Namespaces and model IDs of planned bindings."""

    def target_of(self, claim: Claim, claimed: Mapping[TargetKey, Claim]) -> ScaleTarget | Exclusion:
        """Return the target of a claim, or why it cannot be planned. `claimed` are those of older claims."""
        target = claim.target
        what = f"{target.kind_text} {target.name!r}"
        if not claim.is_bound and claim.model in self.bound_models:
            text = f"modelID {claim.model_id!r} is the name of an AutoscalingPolicyBinding in plans"
            return Exclusion(ConditionReason.INVALID_CONFIGURATION, f"{text}: choose another one")
        if target not in self.targets and target.kind is TargetKind.SCALED:
            why = self.unread.get(target, "its scale was not read: see docs/targets.md")
            return Exclusion(ConditionReason.TARGET_NOT_SUPPORTED, f"{what} cannot be planned: {why}")
        if target not in self.targets:
            text = f"{what} does not exist in namespace {target.namespace!r}"
            return Exclusion(ConditionReason.TARGET_NOT_FOUND, text)
        bound = self.bound.get(target)
        # At equal age the binding takes precedence, consistent with the reader of bindings.
        is_own = bound is not None and claim.is_bound and bound[1] == claim.owner[1:]
        if bound is not None and not is_own and (claim.is_annotated or bound[0] <= claim.created):
            is_older = "" if claim.is_annotated else " is older and"
            text = f"AutoscalingPolicyBinding {bound[1][1]!r}{is_older} already decides on {what}"
            return Exclusion(ConditionReason.TARGET_CLAIMED, f"{text}; {_remedy(claim)}")
        if first := claimed.get(target):
            remedy = "delete one of the two" if first.is_annotated else _remedy(claim)
            return Exclusion(ConditionReason.TARGET_CLAIMED, f"{_precedence(first, claim)} {what}; {remedy}")
        return self.targets[target]


def _remedy(claim: Claim) -> str:
    """Return what the owner of a claim that comes second can do."""
    return f"remove the annotation {MANAGED} here" if claim.is_annotated else "delete one of the two"


def _precedence(first: Claim, other: Claim) -> str:
    """Return the beginning of a sentence about a claim on a target that comes before another one."""
    who = f"{first.owner.kind} {first.name!r}"
    if other.is_annotated and not first.is_annotated:
        return f"{who} already decides on"
    if first.created != other.created:
        return f"{who} is older and already decides on"
    return f"{who}, whose name is first and whose age is the same, already decides on"
