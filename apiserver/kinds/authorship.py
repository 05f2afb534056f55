"""The annotation that records on whose behalf the controller acts on an object.

It holds the user who last changed the spec or a member that counts like it, or who last tried to write the
annotation itself. Only the admission webhooks set it; they overwrite every other value. It keeps `userInfo`
of the admission request, so that the controller can repeat the access review later: may this user scale the
target, or use the service class? It omits which token was used, which does not restrict anything: everyone
who may read the object can read the annotation.
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
"""The name of the annotation."""

_RECORDED: Final = frozenset({(REGISTRY, "AutoscalingPolicyBinding"), (GROUP, "VariantAutoscaling")})
_MEMBERS: Final = ("username", "uid", "groups", "extra")
_CREDENTIAL: Final = "authentication.kubernetes.io/"
"""Prefix of the keys of `extra` that identify the token, and the pod and node that it was issued for.

Source: `k8s.io/apiserver/pkg/authentication/serviceaccount/util.go`.
"""

_MOST_BYTES: Final = 1 << 16
"""A quarter of the limit on the total size of an object's annotations."""

_UNKNOWN: Final = "{}"


def is_recorded(kind: Kind) -> bool:
    """Tell whether objects of a kind record their writer."""
    return (kind.group, kind.kind) in _RECORDED


def telling_annotations(kind: Kind) -> tuple[str, ...]:
    """Return the annotations that count like the spec: changing one makes a user the writer."""
    ours = (WRITTEN_BY, SERVICE_CLASS) if is_recorded(kind) else ()
    return (*ours, kept_annotation(kind)) if kind.has_conversion else ours


def writer_values(kind: Kind, value: Json) -> tuple[JsonValue, ...]:
    """Return the values that the writer of an object is responsible for.

    A user who changes any of them becomes the writer.
    """
    metadata = value.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    texts = (annotations.get(name) for name in telling_annotations(kind))
    return value.get("spec"), labels.get(telling_label(kind)), *texts


def record_of(user: Json) -> str:
    """Return the annotation value for a user, given as `userInfo` of an admission request.

    A user whose record exceeds the size limit is recorded as unknown: dropping some of the groups, or some of
    the restrictions in `extra`, could change the result of an access review.
    """
    facts = {**user, "extra": _restrictions(user.get("extra"))}
    known = {name: facts[name] for name in _MEMBERS if facts.get(name)}
    text = msgspec.json.encode(known, order="sorted").decode()
    return text if len(text) <= _MOST_BYTES else _UNKNOWN


def writer_record(value: Json) -> str | None:
    """Return the value of the annotation of an object, or None if it has none."""
    annotations = (value.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(WRITTEN_BY)
    return text if isinstance(text, str) else None


def writer_of(value: Json) -> Json | None:
    """Return the user who wrote an object, or None if the annotation is missing or cannot be decoded."""
    try:
        user = msgspec.json.decode(writer_record(value) or _UNKNOWN)
    except (msgspec.DecodeError, RecursionError):
        return None
    return user if isinstance(user, dict) and isinstance(user.get("username"), str) else None


def writer_identity(value: Json) -> str | None:
    """Return the record of the user who wrote an object, the same for each of a user's; None without one."""
    user = writer_of(value)
    return None if user is None else record_of(user)


def _restrictions(extra: JsonValue) -> JsonValue:
    """Return `extra` without the keys that identify the token."""
    if not isinstance(extra, dict):
        return extra
    return {name: item for name, item in extra.items() if not name.startswith(_CREDENTIAL)}


def taking_over(what: str, *, namespace: str) -> str:
    """Return the command that makes the caller the writer of an object, such as `va/chat`."""
    return f"kubectl annotate --overwrite -n {namespace} {what} {WRITTEN_BY}=me"
