"""User orders for one variant, by annotations of the object that requests it.

An invalid order is not followed, and reported: the variant is planned as if it were absent.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.activity import ActivitySource, activity_problems, activity_source
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
from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason, Finding


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
