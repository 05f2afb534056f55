"""`/mutate`: refuses with the complete list of errors, or fills in the defaults.

It sees the raw object before the server checks the schema, so it must say everything at once; the server
would name only what its schema knows.
"""

from __future__ import annotations

from apiserver.schema.defaulting import additions
from apiserver.schema.json import Json
from webhooks.admission import find_errors, refusal, subject_of
from webhooks.review import Verdict


def mutate(request: Json) -> Verdict:
    """Return the verdict on a request: a refusal, or a patch that only adds."""
    subject = subject_of(request)
    if subject is None:
        return Verdict()
    found = find_errors(subject)
    if found:
        return Verdict(refusal=refusal(subject, found))
    filled, warnings = additions(subject.version, subject.value)
    patch = tuple(addition.as_operation() for addition in filled)
    return Verdict(patch=patch, warnings=tuple(warnings))
