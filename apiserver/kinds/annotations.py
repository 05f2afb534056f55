"""Stowplan's annotations: which kind has which, their values, and advice about misspelt ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.activity import activity_problems
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import CAPACITY, SERVICE_CLASS
from apiserver.schema.document import nearest
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version

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

PREFILL_PER_DECODE: Final = f"{PREFIX}prefill-per-decode"
"""On a variant with a role, how many replicas of prefill its model has per replica of decode."""

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

ENDPOINT_PICKER: Final = f"{PREFIX}endpoint-picker"
"""On a ModelServer: `NAME` or `NAME:PORT` of the Service of its pool's endpoint picker."""

MODEL_OWNER: Final = f"{PREFIX}model-owner"
"""On objects created from a Model, its `spec.owner`."""

DECISION: Final = f"{PREFIX}decision"
"""On an annotated autoscaler, the last decision about it, in JSON."""

RECORDS: Final = frozenset({WRITTEN_BY, MODEL_OWNER, DECISION})
"""Annotations that Stowplan's processes record on objects; they are no orders."""

_SWITCH: Final = re.compile(r"(true|false)\Z")
_NUMBER: Final = r"[0-9]{1,4}(?:\.[0-9]{1,3})?"
ALLOWED: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    PAUSED: (_SWITCH, "'true' or 'false'"),
    REPLICAS: (re.compile(r"(0|[1-9][0-9]{0,5}|1000000)\Z"), "a whole number from 0 to 1000000"),
    PREEMPTION: (re.compile(r"Never\Z"), "'Never'"),
    ADVISORY: (_SWITCH, "'true' or 'false'"),
    PREFILL_PER_DECODE: (
        re.compile(rf"(?:(?P<least>{_NUMBER})-)?(?P<most>{_NUMBER})\Z"),
        "a number above 0 and below 10000, such as 0.5, or a range of them, such as 0.25-1",
    ),
}
"""Allowed values of the annotations of a VariantAutoscaling or an annotated autoscaler, as a pattern and in
words, but for `stowplan.dev/activity`."""

_OF_VARIANTS: Final = (*ALLOWED, ACTIVITY)
_OF_BINDINGS: Final = (
    *(PAUSED, PREEMPTION, ADVISORY, SCALE_TO_ZERO_GRACE),
    *(SERVICE_CLASS, CAPACITY, ACTIVITY),
)
UNDERSTOOD: Final[Mapping[str, tuple[str, ...]]] = {
    "VariantAutoscaling": _OF_VARIANTS,
    "HorizontalPodAutoscaler": _OF_VARIANTS,
    "ScaledObject": _OF_VARIANTS,
    "AutoscalingPolicyBinding": _OF_BINDINGS,
    "Model": (*_OF_BINDINGS, *ROUTE_ORDERS),
    "ModelRoute": ROUTE_ORDERS,
    "ModelServer": (ENDPOINT_PICKER,),
}
"""The annotations of each kind; other kinds have none."""

_SHOWN_CHARACTERS: Final = 40
_LEAST_LIKENESS: Final = 0.6
_LEAST_LIKENESS_OF_PREFIXES: Final = 0.9
_OURS: Final = PREFIX.removesuffix("/")
_LENGTHS_OF_PREFIXES: Final = range(len(_OURS) - 2, len(_OURS) + 3)


def advice(kind: Kind, version: Version, value: Json) -> Iterator[str]:
    """Yield warnings about a valid raw object: legal, but probably not intended."""
    for advise in version.advise:
        yield from advise(value)
    yield from annotation_advice(kind.kind, value)


def annotation_advice(kind: str, value: Json) -> Iterator[str]:
    """Yield a warning for each annotation that looks like one of ours and has no effect on its kind."""
    understood = UNDERSTOOD.get(kind, ())
    for name, text in (value["metadata"].get("annotations") or {}).items():
        prefix, _, end = name.partition("/")
        if name in RECORDS or name in understood:
            if name in ALLOWED and not is_allowed(name, text):
                yield wrong_value(name, text)
            if name == ACTIVITY:
                yield from activity_problems(value)
        elif _is_ours(prefix):
            yield f"metadata.annotations[{name}]: {no_effect(kind, end)}"


def is_allowed(name: str, text: str) -> bool:
    """Return whether a text is allowed for one of the annotations in `ALLOWED`."""
    if name == PREFILL_PER_DECODE:
        return prefill_per_decode(text) is not None
    return bool(ALLOWED[name][0].match(text))


def prefill_per_decode(text: str) -> tuple[float, float] | None:
    """Return the least and the most replicas of prefill per replica of decode; None if not allowed."""
    match = ALLOWED[PREFILL_PER_DECODE][0].match(text)
    if match is None:
        return None
    least, most = float(match["least"] or match["most"]), float(match["most"])
    return (least, most) if 0 < most >= least else None


def no_effect(kind: str, end: str) -> str:
    """Return that a kind has no annotation with a name, given without its prefix, and which is meant."""
    article = "an" if kind[0] in "AEIO" else "a"
    return f"has no effect on {article} {kind}{_instead(end, UNDERSTOOD.get(kind, ()))}"


def wrong_value(name: str, text: str) -> str:
    """Return the message about an annotation with a value that is not allowed."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return (
        f"metadata.annotations[{name}]: must be {ALLOWED[name][1]}, was {shown!r}, and is ignored: correct or"
        " remove it"
    )


def _is_ours(prefix: str) -> bool:
    is_as_long = len(prefix) in _LENGTHS_OF_PREFIXES
    return is_as_long and bool(nearest(prefix, [_OURS], likeness=_LEAST_LIKENESS_OF_PREFIXES))


def _instead(end: str, understood: tuple[str, ...]) -> str:
    if not understood:
        return ": it has no annotations of Stowplan"
    close = nearest(end, [name.removeprefix(PREFIX) for name in understood], likeness=_LEAST_LIKENESS)
    return f": is {PREFIX}{close} meant?" if close else f": the annotations are {', '.join(understood)}"
