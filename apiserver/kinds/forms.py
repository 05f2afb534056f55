"""The forms of an object under review in the other versions, as conversion would produce them.

The API server stores an object in one version and serves it in all of them. Conversion restores fields from
an annotation that any user may write. So if there is one, every other form is validated as well, its targets
count as named by the writer, and it must not change the status.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.kinds.conversion import convert, kept_annotation
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, same
from apiserver.schema.kind import Kind, Reference, Version
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import judge


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """An object in a version other than the one that was sent, and the stored object in the same version."""

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
        return list(self.version.references(judge(self.version.declaration).fitting(value)))

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


def form_errors(kind: Kind, forms: list[Form]) -> list[FieldError]:
    """Return one error, at the annotation, for each invalid form."""
    path = FieldPath().child("metadata", "annotations").key(kept_annotation(kind))
    return [
        errors.forbidden(path, f"its content is invalid in {form.version.name}: {'; '.join(faults)}")
        for form in forms
        if (faults := form.faults())
    ]
