"""Keeps the record of who wrote an object true: /mutate writes it, /validate refuses a wrong one."""

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
    """Return what the record must say of the writer; None where it stands as it is.

    Whoever changes the spec is the writer, or what counts like it, the record included. The object has its
    defaults.
    """
    if not is_recorded(subject.kind):
        return None
    old, value = subject.old, subject.value
    if old is not None and vouched(subject.kind, old) == vouched(subject.kind, value):
        return None
    return record_of(user_of(request))


def record_errors(subject: Subject, request: AdmissionRequest) -> Iterator[FieldError]:
    """Yield what is wrong with a record: it names somebody else. One that is missing names nobody."""
    due = due_record(subject, request)
    if due is not None and recorded(subject.value) not in {None, due}:
        path = FieldPath().child("metadata", "annotations").key(WRITTEN_BY)
        yield errors.forbidden(path, "does not name the user of this request; admission sets it: try again")


def user_of(request: AdmissionRequest) -> Json:
    """Return who sent a request."""
    user = msgspec.json.decode(request.user_info)
    return user if isinstance(user, dict) else {}
