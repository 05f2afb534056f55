"""User orders for one variant, by annotations of its VariantAutoscaling.

An invalid order is not followed, and reported: the variant is planned as if it were absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason, Finding
from controller.planning.ranges import MAX_REPLICAS

PREFIX: Final = "stowplan.dev/"
"""Prefix of Stowplan's annotations."""

PAUSED: Final = f"{PREFIX}paused"
"""With value `true`, the current replicas are kept, whatever the demand."""

REPLICAS: Final = f"{PREFIX}replicas"
"""A fixed number of replicas, whatever the demand; a pause takes precedence."""

PREEMPTION: Final = f"{PREFIX}preemption"
"""With value `Never`, replicas needed by the variant's own demand are not preempted by higher priorities."""

ADVISORY: Final = f"{PREFIX}advisory"
"""With value `true`, decisions are reported and not acted on."""

SCALE_TO_ZERO_GRACE: Final = f"{PREFIX}scale-to-zero-grace-period"
"""On a binding, the time without activity before the last replica is removed, such as `30s`."""

PARENT_REFS: Final = f"{PREFIX}parent-refs"
"""On a ModelRoute, or on a Namespace for all of its ModelRoutes, the Gateways through which requests arrive.

`NAME`, `NAMESPACE/NAME` or `NAMESPACE/NAME/LISTENER`, separated by commas. An empty value means none,
whatever the Namespace specifies.
"""

REQUEST_PRIORITY: Final = f"{PREFIX}request-priority"
"""On a ModelRoute, the priority of its requests in their pools, an integer."""

ROUTE_ORDERS: Final = (PARENT_REFS, REQUEST_PRIORITY)
"""Annotations of a Model that apply to its ModelRoutes."""

MODEL_OWNER: Final = f"{PREFIX}model-owner"
"""On objects created from a Model, its `spec.owner`."""

RECORDS: Final = frozenset({WRITTEN_BY, MODEL_OWNER})
"""Annotations that Stowplan's processes record on objects; they are no orders."""

_SHOWN_CHARACTERS: Final = 40
_SWITCH: Final = re.compile(r"(true|false)\Z")
ALLOWED: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    PAUSED: (_SWITCH, "'true' or 'false'"),
    REPLICAS: (re.compile(r"(0|[1-9][0-9]{0,5}|1000000)\Z"), f"a whole number from 0 to {MAX_REPLICAS}"),
    PREEMPTION: (re.compile(r"Never\Z"), "'Never'"),
    ADVISORY: (_SWITCH, "'true' or 'false'"),
}
"""Allowed values of each annotation, as a pattern and in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Orders:
    """The orders of one VariantAutoscaling, and the invalid ones."""

    is_paused: bool = False
    pinned_replicas: int | None = None
    may_be_preempted: bool = True
    is_advisory: bool = False
    followed: tuple[str, ...] = ()
    """Valid annotations, as `name=value`."""

    problems: tuple[str, ...] = ()
    """One sentence for each invalid annotation of Stowplan's."""


def orders_of(autoscaling: Json) -> Orders:
    """Return the orders in the annotations of one object."""
    ours = own_annotations(autoscaling)
    good = {name: text for name, text in ours.items() if _is_understood(name, text)}
    return Orders(
        is_paused=good.get(PAUSED) == "true",
        pinned_replicas=int(good[REPLICAS]) if REPLICAS in good else None,
        may_be_preempted=PREEMPTION not in good,
        is_advisory=good.get(ADVISORY) == "true",
        followed=tuple(f"{name}={text}" for name, text in good.items()),
        problems=tuple(_problem(name, text) for name, text in ours.items() if name not in good),
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


def _is_understood(name: str, text: str) -> bool:
    return name in ALLOWED and bool(ALLOWED[name][0].match(text))


def _problem(name: str, text: str) -> str:
    where = f"metadata.annotations[{name}]"
    if name not in ALLOWED:
        return f"{where}: unknown annotation: must be one of {', '.join(ALLOWED)}; correct or remove it"
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return f"{where}: must be {ALLOWED[name][1]}, was {shown!r}, and is ignored: correct or remove it"
