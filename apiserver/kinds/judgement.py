"""Complete validation of an object and its other versions: schema, rules, size of what conversion keeps."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.kinds.conversion import convert, kept_annotation, wanted_annotation_bytes
from apiserver.schema import errors
from apiserver.schema.defaulting import Completion, complete
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, as_object, same
from apiserver.schema.kind import Kind, Reference, Version
from apiserver.schema.metadata import LIMIT_BYTES
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import is_forgiven
from apiserver.schema.shape import DEEPEST, is_deeper_than
from apiserver.schema.validation import judge

_MOST_COPIES: Final = 4
"""The maximum number of copies of a value that conversion keeps: the value, its image after a round trip, and
its source."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of defaulting and validating an object.

    `is_sound` is True only if there is no error at all, not even a forgiven one, and no null to drop.
    """

    errors: list[FieldError]
    completion: Completion
    is_sound: bool


def complete_and_judge(kind: Kind, version: Version, value: Json, old: Json | None = None) -> Judgement:
    """Fill the defaults into a raw object, in place, and return everything wrong with it.

    If the stored object `old` is given, transition rules apply, and errors in values that the update leaves
    unchanged are forgiven. Apart from that, the result depends on the object alone: admission and offline
    checks return the same errors, in the order of the fields.
    """
    completion = complete(version, value)
    problems = judge(version.declaration).validate(value, old, fits=completion.fits)
    is_sound = completion.fits and not problems
    if problems and old is not None:
        problems = _less_forgiven(version.declaration, problems, old=old, new=value)
    if kind.has_conversion and not problems:
        problems = _conversion_errors(kind, value, old)
    return Judgement(errors=problems, completion=completion, is_sound=is_sound)


def _less_forgiven(declared: type, problems: list[FieldError], *, old: Json, new: Json) -> list[FieldError]:
    stored = frozenset(judge(declared).validate(old))
    return [error for error in problems if not is_forgiven(declared, error, old=old, new=new, stored=stored)]


def errors_of(kind: Kind, version: Version, value: Json) -> list[FieldError]:
    """Return everything wrong with a raw object, after defaulting a copy of it."""
    if is_deeper_than(value, DEEPEST):
        return judge(version.declaration).validate(value)
    completed = copy.deepcopy(value)
    return complete_and_judge(kind, version, completed).errors or kept_errors(kind, version, completed)


def _conversion_errors(kind: Kind, value: Json, old: Json | None) -> list[FieldError]:
    size_bytes = _wanted_bytes(kind, value)
    if size_bytes <= LIMIT_BYTES or (old is not None and _wanted_bytes(kind, old) > LIMIT_BYTES):
        return []
    detail = (
        f"the data that other versions cannot express takes {size_bytes} bytes together with all annotations,"
        f" which must have at most {LIMIT_BYTES}"
    )
    return [errors.forbidden(FieldPath().child("spec"), detail)]


def _wanted_bytes(kind: Kind, value: Json) -> int:
    if len(msgspec.json.encode(value)) * _MOST_COPIES < LIMIT_BYTES:
        return 0
    return wanted_annotation_bytes(kind, value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """An object in a version other than the one that was sent, and the stored object in the same version.

    Conversion restores fields from an annotation that any user may write. So if there is one, every other
    form is validated as well, its targets count as named by the writer, and it must not change the status.
    """

    sent_as: Version
    version: Version
    value: Json
    old: Json | None

    def targets(self) -> tuple[list[Reference], list[Reference]]:
        """Return the references in this form, and those in the stored object."""
        return self._references(self.value), [] if self.old is None else self._references(self.old)

    def faults(self) -> list[str]:
        """Return the errors of this form that the stored object does not have."""
        before = set() if self.old is None else set(self._errors(self.old))
        new = [error for error in self._errors(self.value) if error not in before]
        is_same = same(self._status(self.value), self._status(self.old or {}))
        return new if is_same else [*new, "status: may not be changed by this request"]

    def _errors(self, value: Json) -> list[str]:
        bare = {name: item for name, item in value.items() if name != "status"}
        return [str(error) for error in judge(self.version.declaration).validate(bare)]

    def _references(self, value: Json) -> list[Reference]:
        return list(self.version.references(judge(self.version.declaration).typed_part(value)))

    def _status(self, value: Json) -> Json:
        """Return the status fields that the sent version declares; stale copies of others do no harm."""
        status, declared = value.get("status"), node_of(self.sent_as.declaration).property("status")
        names = declared.node.by_name if declared else {}
        if not isinstance(status, dict):
            return {}
        return {name: item for name, item in status.items() if name in names}


def other_forms(kind: Kind, version: Version, value: Json, old: Json | None) -> list[Form]:
    """Return the object, including its status, in every other version."""
    others = [(other, f"{kind.group}/{other.name}") for other in kind.versions if other is not version]
    return [
        Form(
            sent_as=version,
            version=other,
            value=convert(value, name),
            old=None if old is None else convert(old, name),
        )
        for other, name in others
    ]


def kept_errors(kind: Kind, version: Version, value: Json, *, only_stored: bool = False) -> list[FieldError]:
    """Return the errors in what the annotation of conversion restores in other versions, if there is one.

    With `only_stored`, these are the errors in the stored version. The status is left out, as the API server
    drops it from what users write.
    """
    annotations = as_object(as_object(value.get("metadata")).get("annotations"))
    if kept_annotation(kind) not in annotations:
        return []
    bare = {name: item for name, item in value.items() if name != "status"}
    forms = other_forms(kind, version, bare, None)
    return form_errors(kind, [form for form in forms if form.version.is_storage or not only_stored])


def form_errors(kind: Kind, forms: list[Form]) -> list[FieldError]:
    """Return one error, at the annotation, for each invalid form."""
    path = FieldPath().child("metadata", "annotations").key(kept_annotation(kind))
    return [
        errors.forbidden(path, f"its content is invalid in {form.version.name}: {'; '.join(faults)}")
        for form in forms
        if (faults := form.faults())
    ]
