"""What both admission webhooks decide on: the object under review, and everything wrong with it.

Pure functions of the request. An object that is being deleted and a spec that nobody touched are never
refused, so that finalizers can always go; an error that the stored object already has stays forgiven
until its field is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.kinds.conversion import kept_bytes
from apiserver.kinds.registry import find_version
from apiserver.schema import errors
from apiserver.schema.conversion import same
from apiserver.schema.defaulting import defaulted
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Kind, Version
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import DEEPEST, is_deeper_than, validate, without_nulls

_WRITES: Final = frozenset({"CREATE", "UPDATE"})
_ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024
_ROOM_FOR_OTHERS_BYTES: Final = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """An object under review, in the version it was sent in."""

    kind: Kind
    version: Version
    value: Json
    old: Json | None
    namespace: str

    @property
    def name(self) -> str:
        """Return the name for messages; on a create with generateName the prefix."""
        metadata = self.value.get("metadata") or {}
        return str(metadata.get("name") or metadata.get("generateName") or "")


def subject_of(request: Json) -> Subject | None:
    """Return what a review is about, or None where there is nothing to judge."""
    value, old = request.get("object"), request.get("oldObject")
    if request.get("operation") not in _WRITES or request.get("subResource") or not isinstance(value, dict):
        return None
    found = find_version(str(value.get("apiVersion", "")), str(value.get("kind", "")))
    if found is None or _is_leaving(value) or _is_untouched(value, old):
        return None
    return Subject(
        kind=found[0],
        version=found[1],
        value={key: item for key, item in value.items() if key != "status"},
        old=old if isinstance(old, dict) else None,
        namespace=str(request.get("namespace") or ""),
    )


def find_errors(subject: Subject) -> list[FieldError]:
    """Return everything wrong with an object once its defaults are filled in, less what is forgiven."""
    found = _judged(subject, subject.value)
    if not found or subject.old is None:
        return found
    old = {key: item for key, item in subject.old.items() if key != "status"}
    stored = set(_judged(subject, old))
    return [error for error in found if error not in stored]


def refusal(subject: Subject, found: list[FieldError]) -> Json:
    """Return the Status that kubectl prints as an error of a built-in kind."""
    return errors.invalid_status(subject.kind.group, subject.kind.kind, subject.name, found)


def _judged(subject: Subject, value: Json) -> list[FieldError]:
    if is_deeper_than(value, DEEPEST):
        return validate(subject.version.declaration, value)
    value = without_nulls(value)
    found = validate(subject.version.declaration, defaulted(subject.version, value))
    return found or list(_conversion_errors(subject, value))


def _conversion_errors(subject: Subject, value: Json) -> list[FieldError]:
    kept = kept_bytes(subject.kind, value)
    limit = _ANNOTATIONS_LIMIT_BYTES - _ROOM_FOR_OTHERS_BYTES
    if kept <= limit:
        return []
    detail = f"what other versions cannot say takes {kept} bytes and must fit an annotation of {limit} bytes"
    return [errors.forbidden(FieldPath().child("spec"), detail)]


def _is_leaving(value: Json) -> bool:
    return bool((value.get("metadata") or {}).get("deletionTimestamp"))


def _is_untouched(value: Json, old: JsonValue) -> bool:
    if not isinstance(old, dict) or is_deeper_than(value, DEEPEST):
        return False
    return same(old.get("spec"), value.get("spec"))
