"""What a person orders for one variant, by annotations of its VariantAutoscaling.

An order that is not understood is not followed, and is named: the variant is planned as if it were not there.
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
"""What our annotations begin with."""

PAUSED: Final = f"{PREFIX}paused"
"""`true`: what runs stands, whatever the demand."""

REPLICAS: Final = f"{PREFIX}replicas"
"""So many replicas, whatever the demand; a pause goes before it."""

PREEMPTION: Final = f"{PREFIX}preemption"
"""`Never`: replicas that the variant's own demand needs don't give way to higher priorities."""

ADVISORY: Final = f"{PREFIX}advisory"
"""`true`: decisions are told and not acted on."""

SCALE_TO_ZERO_GRACE: Final = f"{PREFIX}scale-to-zero-grace-period"
"""Of a binding: how long nothing must be asked for before the last replica goes, such as `30s`."""

PARENT_REFS: Final = f"{PREFIX}parent-refs"
"""Of a ModelRoute, or of a Namespace for all of its ModelRoutes: the Gateways that requests come through.

`NAME`, `NAMESPACE/NAME` or `NAMESPACE/NAME/LISTENER`, with commas between. Empty: none, whatever the
Namespace says.
"""

REQUEST_PRIORITY: Final = f"{PREFIX}request-priority"
"""Of a ModelRoute: the priority of its requests in their pools, a whole number."""

ROUTE_ORDERS: Final = (PARENT_REFS, REQUEST_PRIORITY)
"""What is said of a Model for its ModelRoutes."""

MODEL_OWNER: Final = f"{PREFIX}model-owner"
"""Of what a Model became: `spec.owner`."""

RECORDS: Final = frozenset({WRITTEN_BY, MODEL_OWNER})
"""What our own processes write down on objects: it orders nothing."""

_SHOWN_CHARACTERS: Final = 40
_SWITCH: Final = re.compile(r"(true|false)\Z")
_ALLOWED: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    PAUSED: (_SWITCH, "'true' or 'false'"),
    REPLICAS: (re.compile(r"(0|[1-9][0-9]{0,5}|1000000)\Z"), f"a whole number from 0 to {MAX_REPLICAS}"),
    PREEMPTION: (re.compile(r"Never\Z"), "'Never'"),
    ADVISORY: (_SWITCH, "'true' or 'false'"),
}
"""What each may say, as a pattern and in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Orders:
    """The orders of one VariantAutoscaling, and what of them was not understood."""

    is_paused: bool = False
    pinned_replicas: int | None = None
    may_be_preempted: bool = True
    is_advisory: bool = False
    followed: tuple[str, ...] = ()
    """Annotations that say something, as `name=value`."""

    problems: tuple[str, ...] = ()
    """One sentence for each annotation of ours that says nothing."""


def orders_of(autoscaling: Json) -> Orders:
    """Return what the annotations of one object order."""
    annotations = autoscaling["metadata"].get("annotations") or {}
    ours = {
        name: text
        for name, text in sorted(annotations.items())
        if name.startswith(PREFIX) and name not in RECORDS
    }
    good = {name: text for name, text in ours.items() if _is_understood(name, text)}
    return Orders(
        is_paused=good.get(PAUSED) == "true",
        pinned_replicas=int(good[REPLICAS]) if REPLICAS in good else None,
        may_be_preempted=PREEMPTION not in good,
        is_advisory=good.get(ADVISORY) == "true",
        followed=tuple(f"{name}={text}" for name, text in good.items()),
        problems=tuple(_problem(name, text) for name, text in ours.items() if name not in good),
    )


def orders_finding(orders: Orders) -> Finding:
    """Return whether all orders were understood, and a reason and a sentence that say so."""
    if orders.problems:
        return False, ConditionReason.ANNOTATION_NOT_UNDERSTOOD, "; ".join(orders.problems)
    if orders.followed:
        return True, ConditionReason.ANNOTATIONS_FOLLOWED, f"followed: {', '.join(orders.followed)}"
    return True, ConditionReason.NO_ANNOTATIONS, f"no annotation {PREFIX}... has an effect"


def _is_understood(name: str, text: str) -> bool:
    return name in _ALLOWED and bool(_ALLOWED[name][0].match(text))


def _problem(name: str, text: str) -> str:
    where = f"metadata.annotations[{name}]"
    if name not in _ALLOWED:
        return f"{where}: unknown annotation: must be one of {', '.join(_ALLOWED)}; correct or remove it"
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return f"{where}: must be {_ALLOWED[name][1]}, was {shown!r}, and is ignored: correct or remove it"
