"""The annotation that records an object's writer: /mutate sets it, /validate rejects a wrong one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from apiserver.kinds.authorship import WRITTEN_BY, is_recorded, record_of, writer_record, writer_values
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from webhooks.admission import Subject
from webhooks.review import AdmissionRequest


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
