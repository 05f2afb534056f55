"""The object under review, as both admission webhooks judge it.

An update that leaves the spec unchanged is never judged, so that finalizers can always be removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from apiserver.kinds.annotations import annotation_advice
from apiserver.kinds.authorship import (
    WRITTEN_BY,
    is_recorded,
    record_of,
    telling_annotations,
    writer_record,
    writer_values,
)
from apiserver.kinds.conversion import convert, kept_annotation, telling_label
from apiserver.kinds.judgement import Form, other_forms
from apiserver.kinds.llmd.conversion import kept_when_relabelled
from apiserver.kinds.registry import find_version
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue, same, without_depths
from apiserver.schema.kind import Kind, Reference, Version, no_references
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import judge
from webhooks.review import NULL, AdmissionRequest, ReviewedObject

_WRITES: Final = frozenset({"CREATE", "UPDATE"})
_MOST_COMPARED: Final = 64
"""Changed annotations whose names are compared with ours; an object may have tens of thousands."""

Decoded = TypeVar("Decoded")


class UnreadableObjectError(Exception):
    """The object under review cannot be decoded."""


_any: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
_object: Final = msgspec.json.Decoder(ReviewedObject)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """An object under review without its status, in the version sent, and its forms in other versions."""

    kind: Kind
    version: Version
    value: Json
    old: Json | None
    namespace: str
    forms: list[Form]
    to_keep: str | None
    """The conversion annotation to set on the object; None where it needs no change."""

    @property
    def name(self) -> str:
        """Return the name for messages, or the prefix if a create request has generateName."""
        metadata = self.value["metadata"]
        return str(metadata.get("name") or metadata.get("generateName") or "")

    def references(self) -> list[Reference]:
        """Return the references to other objects in a well-typed object."""
        return list(self.version.references(self.value))

    def claims(self) -> list[Reference]:
        """Return the scale targets, in any form, that this request adds, without duplicates."""
        targets = self._typed_references(self.value)
        targets_before = [] if self.old is None else self._typed_references(self.old)
        for form in self.forms:
            now, before = form.targets()
            targets, targets_before = [*targets, *now], [*targets_before, *before]
        previous = {_identity(claim) for claim in targets_before}
        by_identity = {_identity(claim): claim for claim in reversed(targets) if claim.is_scaled}
        return [claim for identity, claim in reversed(by_identity.items()) if identity not in previous]

    def _typed_references(self, value: Json) -> list[Reference]:
        if self.version.references is no_references:
            return []
        return list(self.version.references(judge(self.version.declaration).typed_part(value)))


def subject_of(request: AdmissionRequest) -> Subject | None:
    """Return the object under review, or None where there is nothing to judge.

    Raises UnreadableObjectError for an object that no API server would send.
    """
    if request.operation not in _WRITES or request.sub_resource:
        return None
    sent, stored = decode_object(request.object), decode_object(request.old_object)
    if sent is None:
        return None
    known = find_version(sent.api_version, sent.kind)
    if known is None or (stored is not None and _is_untouched(known[0], stored, sent)):
        return None
    kind, version = known
    namespace = request.namespace or ""
    return Subject(
        kind=kind,
        version=version,
        value=plain_object(sent, namespace),
        old=None if stored is None else plain_object(stored, namespace),
        namespace=namespace,
        forms=_forms(kind, version, sent, stored) if kind.has_conversion else [],
        to_keep=_to_keep(kind, sent, stored) if kind.has_conversion and stored is not None else None,
    )


def annotation_warnings(request: AdmissionRequest) -> tuple[str, ...]:
    """Return warnings about annotations that an update adds or changes, and that have no effect.

    Only the first of very many are compared. Raises UnreadableObjectError for an object that no API server
    would send.
    """
    sent, stored = decode_object(request.object), decode_object(request.old_object)
    if request.operation != "UPDATE" or request.sub_resource or sent is None or stored is None:
        return ()
    known = find_version(sent.api_version, sent.kind)
    if known is None:
        return ()
    before = _annotations(stored)
    changed = ((name, text) for name, text in _annotations(sent).items() if before.get(name) != text)
    compared = dict(islice(changed, _MOST_COMPARED))
    return tuple(annotation_advice(known[0].kind, {"metadata": {"annotations": compared}}))


def decode_object(value: msgspec.Raw) -> ReviewedObject | None:
    """Return an object of a request decoded, or None for null. Raises UnreadableObjectError."""
    return None if value == NULL else _decode(_object, value)


def _to_keep(kind: Kind, sent: ReviewedObject, stored: ReviewedObject) -> str | None:
    label = telling_label(kind)
    if _labels(sent).get(label) == _labels(stored).get(label):
        return None
    return kept_when_relabelled(_whole(sent, stored), _whole(stored, stored))


def _forms(kind: Kind, version: Version, sent: ReviewedObject, stored: ReviewedObject | None) -> list[Form]:
    if _annotations(sent).get(kept_annotation(kind)) is None:  # then every version has the same content
        return []
    return other_forms(
        kind, version, _whole(sent, stored), None if stored is None else _whole(stored, stored)
    )


def _whole(value: ReviewedObject, stored: ReviewedObject | None) -> Json:
    """Return an object with the status that it will have: the API server keeps the stored one."""
    status = msgspec.UNSET if stored is None else stored.status
    return plain_object(value, "") | (
        {} if status is msgspec.UNSET else {"status": _decode_member(status, "status")}
    )


def _identity(claim: Reference) -> tuple[str, str, str, tuple[int, ...]]:
    return claim.group, claim.kind, claim.name, claim.bounds


def _decode(decoder: msgspec.json.Decoder[Decoded], text: msgspec.Raw, *, root: str = "$") -> Decoded:
    try:
        return decoder.decode(text)
    except RecursionError:  # the first decoder skips the object, which needs less stack
        return decoder.decode(without_depths(bytes(text)))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error).replace("`$", f"`{root}", 1)
        raise UnreadableObjectError(f"the object cannot be read: {why}") from error


def plain_object(value: ReviewedObject, namespace: str) -> Json:
    """Return an object under review without its status; its namespace, if given, replaces that of the object.

    Raises UnreadableObjectError for a spec that cannot be decoded.
    """
    metadata: Json = {name: item for name, item in (value.metadata or {}).items() if item is not None}
    if namespace:
        metadata["namespace"] = namespace
    plain: Json = {"apiVersion": value.api_version, "kind": value.kind, "metadata": metadata}
    if value.spec is not msgspec.UNSET:
        plain["spec"] = _decode_member(value.spec, "spec")
    return plain


def _decode_member(member: msgspec.Raw, name: str) -> JsonValue:
    value: JsonValue = _decode(_any, member, root=f"$.{name}")
    return value


def _is_untouched(kind: Kind, old: ReviewedObject, new: ReviewedObject) -> bool:
    """Tell whether an update keeps the spec, the conversion label, the owners and recorded annotations.

    The annotation of conversion may be removed if the spec remains the same in every version. A downgrade
    removes it from every object, and its user becomes the writer of none.
    """
    if not _has_same_spec(old, new):
        return False
    if _aside(kind, old) == _aside(kind, new):
        return True
    kept = kept_annotation(kind)
    if kept in _annotations(new) or _aside(kind, old, but=kept) != _aside(kind, new, but=kept):
        return False
    return _has_same_specs(kind, old, new)


def _has_same_specs(kind: Kind, old: ReviewedObject, new: ReviewedObject) -> bool:
    names = [f"{kind.group}/{version.name}" for version in kind.versions]
    before, now = _whole(old, old), _whole(new, old)
    return all(same(convert(before, name).get("spec"), convert(now, name).get("spec")) for name in names)


def _has_same_spec(old: ReviewedObject, new: ReviewedObject) -> bool:
    if old.spec is msgspec.UNSET or new.spec is msgspec.UNSET:
        return old.spec is new.spec
    return bool(old.spec == new.spec)  # the same server encoded both, with the same key order


def _aside(kind: Kind, value: ReviewedObject, *, but: str = "") -> tuple[JsonValue, ...]:
    telling = [_annotations(value).get(name) for name in telling_annotations(kind) if name != but]
    owners = (value.metadata or {}).get("ownerReferences")
    return owners, _labels(value).get(telling_label(kind)), *telling


def _labels(value: ReviewedObject) -> dict[str, str]:
    return (value.metadata or {}).get("labels") or {}


def _annotations(value: ReviewedObject) -> dict[str, str]:
    return (value.metadata or {}).get("annotations") or {}


def due_record(subject: Subject, request: AdmissionRequest) -> str | None:
    """Return the value that the annotation must have, or None where it stays as it is."""
    return record_of(user_of(request)) if changes_writer(subject) else None


def changes_writer(subject: Subject) -> bool:
    """Tell whether the user of this request becomes the writer of the object.

    The writer is the user who last changed the spec or another vouched part, the annotation included.
    Defaults must already be set in the object.
    """
    if not is_recorded(subject.kind):
        return False
    old, value = subject.old, subject.value
    return old is None or writer_values(subject.kind, old) != writer_values(subject.kind, value)


def record_errors(subject: Subject, request: AdmissionRequest) -> Iterator[FieldError]:
    """Yield an error if the annotation names another user. A missing annotation is no error."""
    record = writer_record(subject.value)
    if record is not None and due_record(subject, request) not in {None, record}:
        path = FieldPath().child("metadata", "annotations").key(WRITTEN_BY)
        yield errors.forbidden(path, "does not name the user of this request; admission sets it: try again")


def user_of(request: AdmissionRequest) -> Json:
    """Return the user who sent a request, as in `userInfo`."""
    user = msgspec.json.decode(request.user_info)
    return user if isinstance(user, dict) else {}
