"""The annotation that records an object's writer: /mutate sets it, /validate rejects a wrong one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from apiserver.kinds.authorship import WRITTEN_BY, is_recorded, record_of, recorded, vouched
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath
from webhooks.admission import Subject
from webhooks.review import AdmissionRequest


def due_record(subject: Subject, request: AdmissionRequest) -> str | None:
    """Return the value that the annotation must have, or None where it stays as it is.

    The writer is the user who last changed the spec or another vouched part, the annotation included.
    Defaults must already be set in the object.
    """
    if not is_recorded(subject.kind):
        return None
    old, value = subject.old, subject.value
    if old is not None and vouched(subject.kind, old) == vouched(subject.kind, value):
        return None
    return record_of(user_of(request))


def record_errors(subject: Subject, request: AdmissionRequest) -> Iterator[FieldError]:
    """Yield an error if the annotation names another user. A missing annotation is no error."""
    due = due_record(subject, request)
    if due is not None and recorded(subject.value) not in {None, due}:
        path = FieldPath().child("metadata", "annotations").key(WRITTEN_BY)
        yield errors.forbidden(path, "does not name the user of this request; admission sets it: try again")


def user_of(request: AdmissionRequest) -> Json:
    """Return the user who sent a request, as in `userInfo`."""
    user = msgspec.json.decode(request.user_info)
    return user if isinstance(user, dict) else {}
