"""The decision that both admission webhooks share: a rejection with all errors, or the judged object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apiserver.kinds.forms import form_errors
from apiserver.kinds.judgement import Judgement, complete_and_judge
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.validation import MOST_ERRORS
from webhooks.admission import Subject, UnreadableObjectError, subject_of
from webhooks.authorship import record_errors, user_of
from webhooks.large import worked
from webhooks.permissions import UndecidedError
from webhooks.review import AdmissionRequest
from webhooks.scaling import Scaling
from webhooks.tenancy import Tenancy

_UNAVAILABLE: Final = 503
_MOST_ERRORS: Final = MOST_ERRORS + 1


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A rejection, or the judgement of an object that may be admitted."""

    subject: Subject | None = None
    judgement: Judgement | None = None
    refusal: Json | None = None


async def decide(
    request: AdmissionRequest, scaling: Scaling, tenancy: Tenancy, *, must_be_sure: bool
) -> Decision:
    """Judge the object under review, and whether its writer may use what it references.

    This also fills defaults into the object. A permission that cannot be checked, or a wrong annotation of
    the writer, leads to a rejection only if `must_be_sure`.
    """
    try:
        subject = subject_of(request)
    except UnreadableObjectError as error:
        return Decision(refusal=_status(422, "Invalid", str(error)))
    if subject is None:
        return Decision()
    judgement = await worked(
        request, complete_and_judge, subject.kind, subject.version, subject.value, subject.old
    )
    # The other forms are conversions of this one, and would repeat its errors.
    found = list(judgement.errors) or form_errors(subject.kind, subject.forms)
    if must_be_sure:
        found += record_errors(subject, request)
    try:
        if claims := subject.claims(is_valid=judgement.is_sound):
            found += await _scaling_errors(subject, claims, request, scaling)
        found += await tenancy.errors(subject, request)
    except UndecidedError as error:
        if must_be_sure and not found:
            return Decision(refusal=_status(_UNAVAILABLE, "ServiceUnavailable", f"{error}; try again"))
    refusal = await _refusal(subject, found, request) if found else None
    return Decision(subject=subject, judgement=judgement, refusal=refusal)


async def _scaling_errors(
    subject: Subject, claims: Sequence[Reference], request: AdmissionRequest, scaling: Scaling
) -> list[FieldError]:
    return await scaling.errors(claims, user=user_of(request), namespace=subject.namespace)


async def _refusal(subject: Subject, found: Sequence[FieldError], request: AdmissionRequest) -> Json:
    """Return the Status that kubectl prints like an error of a built-in kind.

    The API server validates metadata only after admission. Metadata errors are listed here too, so that the
    user does not discover them after everything else is fixed.
    """
    wrong = await worked(request, metadata_errors, subject.value["metadata"])
    listed = [*(item.error for item in wrong), *found]
    return errors.invalid_status(subject.kind.group, subject.kind.kind, subject.name, listed[:_MOST_ERRORS])


def _status(code: int, reason: str, message: str) -> Json:
    return {"status": "Failure", "code": code, "reason": reason, "message": message}
