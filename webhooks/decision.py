"""What both admission webhooks say of an object: refused with everything that is wrong, or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.kinds.judgement import Judgement, complete_and_judge
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.validation import MOST_ERRORS
from webhooks.admission import Subject, UnreadableObjectError, subject_of
from webhooks.forms import form_errors
from webhooks.review import AdmissionRequest
from webhooks.scaling import Scaling, UndecidedError

_UNAVAILABLE: Final = 503
_MOST_ERRORS: Final = MOST_ERRORS + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """A refusal, or what was found out about an object that may pass."""

    subject: Subject | None = None
    judgement: Judgement | None = None
    refusal: Json | None = None


async def decide(request: AdmissionRequest, scaling: Scaling, *, must_be_sure: bool) -> Decision:
    """Judge the object under review, and whether its writer may have scaled what it names.

    Defaults are filled into the object on the way. A permission that cannot be asked for refuses only where
    the caller `must_be_sure`.
    """
    try:
        subject = subject_of(request)
    except UnreadableObjectError as error:
        return Decision(refusal=_status(422, "Invalid", str(error)))
    if subject is None:
        return Decision()
    judgement = complete_and_judge(subject.kind, subject.version, subject.value, subject.old)
    found = [*judgement.errors, *form_errors(subject.kind, subject.forms)]
    try:
        found += await _scaling_errors(subject, request, scaling, is_valid=judgement.is_sound)
    except UndecidedError as error:
        if must_be_sure and not found:
            return Decision(refusal=_status(_UNAVAILABLE, "ServiceUnavailable", f"{error}; try again"))
    refusal = _refusal(subject, found[:_MOST_ERRORS]) if found else None
    return Decision(subject=subject, judgement=judgement, refusal=refusal)


async def _scaling_errors(
    subject: Subject, request: AdmissionRequest, scaling: Scaling, *, is_valid: bool
) -> list[FieldError]:
    claims = subject.claims(is_valid=is_valid)
    if not claims:
        return []
    user = msgspec.json.decode(request.user_info)
    return await scaling.errors(
        claims, user=user if isinstance(user, dict) else {}, namespace=subject.namespace
    )


def _refusal(subject: Subject, found: list[FieldError]) -> Json:
    """Return the Status that kubectl prints as an error of a built-in kind."""
    return errors.invalid_status(subject.kind.group, subject.kind.kind, subject.name, found)


def _status(code: int, reason: str, message: str) -> Json:
    return {"status": "Failure", "code": code, "reason": reason, "message": message}
