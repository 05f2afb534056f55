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
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.validation import MOST_ERRORS
from webhooks.admission import Subject, UnreadableObjectError, subject_of
from webhooks.authorship import record_errors, user_of
from webhooks.large import worked
from webhooks.permissions import UndecidedError
from webhooks.review import AdmissionRequest, Verdict
from webhooks.scaling import Scaling
from webhooks.tenancy import Tenancy

_UNAVAILABLE: Final = 503
_MOST_ERRORS: Final = MOST_ERRORS + 1


class Judged(msgspec.Struct, frozen=True):
    """An object that may be admitted, with its judgement, and with warnings about it if it is sound."""

    subject: Subject
    judgement: Judgement
    advice: list[str]


async def decide(
    request: AdmissionRequest, scaling: Scaling, tenancy: Tenancy, *, is_final: bool
) -> Judged | Verdict:
    """Judge the object under review, and whether its writer may use what it references.

    This also fills defaults into the object. Returns the verdict if it is final: a rejection, or that there
    is nothing to judge. A permission that cannot be checked, or a wrong annotation of the writer, leads to a
    rejection only if `is_final`, that is, in `/validate`; only then there is advice.
    """
    try:
        subject = subject_of(request)
    except UnreadableObjectError as error:
        return Verdict(refusal=_status(422, "Invalid", str(error)))
    if subject is None:
        return Verdict()
    judgement, advice = await worked(request, _judged, subject, is_final)
    found = [*judgement.errors]
    if subject.forms and not found:  # these are conversions of the object, and would repeat its errors
        found = form_errors(subject.kind, subject.forms)
    if is_final:
        found += record_errors(subject, request)
    try:
        if claims := subject.claims(is_valid=judgement.is_sound):
            found += await scaling.errors(claims, user=user_of(request), namespace=subject.namespace)
        found += await tenancy.errors(subject, request)
    except UndecidedError as error:
        if is_final and not found:
            return Verdict(refusal=_status(_UNAVAILABLE, "ServiceUnavailable", f"{error}; try again"))
    if found:
        return Verdict(refusal=await _refusal(subject, found, request))
    return Judged(subject, judgement, advice)


def _judged(subject: Subject, is_advised: bool) -> tuple[Judgement, list[str]]:
    judgement = complete_and_judge(subject.kind, subject.version, subject.value, subject.old)
    if not is_advised or not judgement.is_sound:
        return judgement, []
    return judgement, [text for advise in subject.version.advise for text in advise(subject.value)]


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
