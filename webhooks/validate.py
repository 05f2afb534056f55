"""`/validate`: repeats the check after other mutators, and adds advice."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.schema.json import Json
from webhooks.admission import Subject, find_errors, refusal, subject_of
from webhooks.review import Verdict

Advice = Callable[[Subject], list[str]]
"""What a look at other objects adds: warnings, never a refusal, since the order of applying is free."""


def validate(request: Json, advice: Advice) -> Verdict:
    """Return the verdict on a request: a refusal, or warnings about what is legal but unlikely meant."""
    subject = subject_of(request)
    if subject is None:
        return Verdict()
    found = find_errors(subject)
    if found:
        return Verdict(refusal=refusal(subject, found))
    warnings = [text for advise in subject.version.advise for text in advise(subject.value)]
    return Verdict(warnings=tuple(warnings + advice(subject)))
