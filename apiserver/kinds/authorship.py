"""Who wrote an object on whose behalf the controller acts: an annotation that admission alone writes.

It names the user who last changed the spec or what counts like it, or who last tried to write the annotation.
The webhooks set it; what anybody else writes there does not last. It holds what the API server said of the
user, so that the same question can be asked again later: may this user scale the target, or use the class?
"""

from __future__ import annotations

from typing import Final

import msgspec

from apiserver.kinds.conversion import kept_annotation, telling_label
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import SERVICE_CLASS
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.kinds.llmd.conversion import GROUP
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Kind

WRITTEN_BY: Final = "stowplan.dev/written-by"
"""Name of the annotation."""

_RECORDED: Final = frozenset({(REGISTRY, "AutoscalingPolicyBinding"), (GROUP, "VariantAutoscaling")})
_MEMBERS: Final = ("username", "uid", "groups", "extra")
_MOST_BYTES: Final = 1 << 16
"""All annotations of an object may have four times as many."""

_UNKNOWN: Final = "{}"


def is_recorded(kind: Kind) -> bool:
    """Tell whether objects of a kind say who wrote them."""
    return (kind.group, kind.kind) in _RECORDED


def telling_annotations(kind: Kind) -> tuple[str, ...]:
    """Return the annotations that count like the spec: who writes them is the writer of the object."""
    ours = (WRITTEN_BY, SERVICE_CLASS) if is_recorded(kind) else ()
    return (*ours, kept_annotation(kind)) if kind.has_conversion else ours


def vouched(kind: Kind, value: Json) -> tuple[JsonValue, ...]:
    """Return what the writer of an object answers for: who changes any of it is the writer from then on."""
    metadata = value.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    said = (annotations.get(name) for name in telling_annotations(kind))
    return value.get("spec"), labels.get(telling_label(kind)), *said


def record_of(user: Json) -> str:
    """Return what the annotation says of a user, as `userInfo` of an admission request describes one.

    A user with too many groups to be written down is nobody: without some of them, or of the restrictions in
    `extra`, the answer to the question might be another one.
    """
    known = {name: user[name] for name in _MEMBERS if user.get(name)}
    text = msgspec.json.encode(known, order="sorted").decode()
    return text if len(text) <= _MOST_BYTES else _UNKNOWN


def recorded(value: Json) -> str | None:
    """Return what the annotation of an object says, if anything."""
    annotations = (value.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(WRITTEN_BY)
    return text if isinstance(text, str) else None


def writer_of(value: Json) -> Json | None:
    """Return the user who wrote an object; None where that is not known, or not to be read."""
    try:
        user = msgspec.json.decode(recorded(value) or _UNKNOWN)
    except (msgspec.DecodeError, RecursionError):
        return None
    return user if isinstance(user, dict) and isinstance(user.get("username"), str) else None


def taking_over(what: str, *, namespace: str) -> str:
    """Return the command by which somebody becomes the writer of an object, such as `va/chat`, as it is."""
    return f"kubectl annotate --overwrite -n {namespace} {what} {WRITTEN_BY}=me"
