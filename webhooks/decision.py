"""`/mutate` and `/validate`: a rejection with all errors, or defaults, or warnings.

`/mutate` receives the raw object before the API server validates the schema. It must report all errors at
once, because the server would report only those that its schema covers. `/validate` repeats the checks after
other mutating webhooks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar, TypeVarTuple, Unpack

import msgspec

from apiserver.kinds.annotations import advice
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.conversion import kept_annotation
from apiserver.kinds.judgement import Judgement, complete_and_judge, form_errors
from apiserver.schema import errors
from apiserver.schema.defaulting import Addition
from apiserver.schema.errors import FieldError
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.validation import MOST_ERRORS
from webhooks.admission import (
    Subject,
    UnreadableObjectError,
    annotation_warnings,
    due_record,
    record_errors,
    subject_of,
    user_of,
)
from webhooks.permissions import PermissionCheck, UndecidedError, denials
from webhooks.referents import Referents, reference_warnings
from webhooks.review import SMALL_BYTES, AdmissionRequest, AdmissionResponse, failure_status
from webhooks.scaling import OPEN, ScalingAdmission, Tenancy

# One thread only: its work competes with the event loop for the GIL, and more threads would slow it down.
_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large")

_EXPRESSION: Final = b'"regex"'
_MOST_EXPRESSIONS: Final = 2
"""The number of regular expressions in a small review. Compiling one can take 40 ms, and an object of 13 kB
has room for hundreds."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Return the result of work that runs in the thread."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *args)


def is_costly(request: AdmissionRequest) -> bool:
    """Tell whether the objects are large or have many expressions; an old one may be judged as well."""
    texts = (request.object, request.old_object)
    if sum(memoryview(text).nbytes for text in texts) > SMALL_BYTES:
        return True
    return sum(bytes(text).count(_EXPRESSION) for text in texts) > _MOST_EXPRESSIONS


_UNAVAILABLE: Final = 503
_MOST_ERRORS: Final = MOST_ERRORS + 1


class _Assessment(msgspec.Struct, kw_only=True):
    """What is known of an object before the API server is asked for permissions."""

    subject: Subject
    judgement: Judgement
    advice: list[str]
    """Warnings about a sound object."""
    errors: list[FieldError]
    checks: list[PermissionCheck]
    undecided: str = ""
    """Why permissions could not be checked, if so."""


async def mutate(
    request: AdmissionRequest, scaling: ScalingAdmission, tenancy: Tenancy = OPEN
) -> AdmissionResponse:
    """Return the response to a request: a rejection, or a patch that adds absent fields.

    The patch may replace only the annotations of conversion and of the writer.

    Permissions that cannot be checked are left to `/validate`. An update that leaves the spec unchanged gets
    warnings about its new annotations.
    """
    return await _decide(request, scaling, tenancy, partial(_patch_response, request), is_final=False)


def _patch_response(request: AdmissionRequest, assessed: _Assessment) -> AdmissionResponse:
    completion = assessed.judgement.completion
    patch = (*completion.additions, *_annotation_patch(assessed.subject, request))
    return AdmissionResponse(patch=patch, warnings=tuple(completion.warnings))


def _annotation_patch(subject: Subject, request: AdmissionRequest) -> list[Addition]:
    """Return the patch operation that sets our annotations and keeps all others; none if they are set."""
    record = due_record(subject, request)
    if record is None and subject.to_keep is None:
        return []
    ours = {kept_annotation(subject.kind): subject.to_keep, WRITTEN_BY: record}
    others = subject.value["metadata"].get("annotations", {})
    all_ = others | {name: text for name, text in ours.items() if text is not None}
    return [] if others == all_ else [Addition("/metadata/annotations", all_)]


async def validate(
    request: AdmissionRequest, scaling: ScalingAdmission, referents: Referents, tenancy: Tenancy = OPEN
) -> AdmissionResponse:
    """Return the response to a request: a rejection, or warnings about probably unintended values."""
    return await _decide(request, scaling, tenancy, partial(_warning_response, referents), is_final=True)


def _warning_response(referents: Referents, assessed: _Assessment) -> AdmissionResponse:
    if not assessed.judgement.is_sound:
        return AdmissionResponse()
    subject = assessed.subject
    own = subject.kind.kind, subject.name
    missing = reference_warnings(subject.references(), subject.value, referents, own)
    return AdmissionResponse(warnings=(*assessed.advice, *missing))


async def _decide(
    request: AdmissionRequest,
    scaling: ScalingAdmission,
    tenancy: Tenancy,
    admit: Callable[[_Assessment], AdmissionResponse],
    *,
    is_final: bool,
) -> AdmissionResponse:
    """Judge the object under review, and whether its writer may use what it references.

    This also fills defaults into the object. `admit` returns the response for one that is not rejected. A
    permission that cannot be checked, or a wrong annotation of the writer, leads to a rejection only if
    `is_final`, that is, in `/validate`; only then there is advice.
    """
    try:
        subject = subject_of(request)
        if subject is None:
            return AdmissionResponse(warnings=() if is_final else annotation_warnings(request))
    except UnreadableObjectError as error:
        return AdmissionResponse(refusal=failure_status(422, "Invalid", str(error)))
    is_apart = is_costly(request)
    assess = partial(_assess, request, subject, scaling, tenancy, is_final=is_final)
    assessed = await in_thread(assess) if is_apart else assess()
    await _check_permissions(assessed)
    if assessed.errors:
        return await in_thread(_rejection, assessed) if is_apart else _rejection(assessed)
    if assessed.undecided and is_final:
        return AdmissionResponse(
            refusal=failure_status(_UNAVAILABLE, "ServiceUnavailable", f"{assessed.undecided}; try again")
        )
    return admit(assessed)


async def _check_permissions(assessed: _Assessment) -> None:
    try:
        for check in assessed.checks:
            assessed.errors += await denials(check)
    except UndecidedError as error:
        assessed.undecided = str(error)


def _assess(
    request: AdmissionRequest,
    subject: Subject,
    scaling: ScalingAdmission,
    tenancy: Tenancy,
    *,
    is_final: bool,
) -> _Assessment:
    judgement = complete_and_judge(subject.kind, subject.version, subject.value, subject.old)
    is_advised = is_final and judgement.is_sound
    advised = [*advice(subject.kind, subject.version, subject.value)] if is_advised else []
    problems = [*judgement.errors]
    if subject.forms and not problems:  # these are conversions of the object, and would repeat its errors
        problems = form_errors(subject.kind, subject.forms)
    if is_final:
        problems += record_errors(subject, request)
    assessed = _Assessment(subject=subject, judgement=judgement, advice=advised, errors=problems, checks=[])
    try:
        if claims := subject.claims():
            problems += scaling.errors(claims)
            assessed.checks += scaling.required_permissions(
                claims, user=user_of(request), namespace=subject.namespace
            )
        assessed.checks += tenancy.required_privileges(subject, request)
    except UndecidedError as error:
        assessed.undecided = str(error)
    return assessed


def _rejection(assessed: _Assessment) -> AdmissionResponse:
    """Return the rejection with the Status that kubectl prints like an error of a built-in kind.

    The API server validates metadata only after admission. Metadata errors are listed here too, so that the
    user does not discover them after everything else is fixed.
    """
    subject = assessed.subject
    listed = [*(item.error for item in metadata_errors(subject.value["metadata"])), *assessed.errors]
    kind = subject.kind
    status = errors.invalid_status(kind.group, kind.kind, subject.name, listed[:_MOST_ERRORS])
    return AdmissionResponse(refusal=status)
