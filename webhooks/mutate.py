"""`/mutate`: refuses with the complete list of errors, or fills in the defaults.

It sees the raw object before the server checks the schema, so it must say everything at once; the server
would name only what its schema knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.conversion import kept_annotation
from apiserver.schema.filler import Addition
from webhooks.admission import Subject
from webhooks.authorship import due_record
from webhooks.decision import decide
from webhooks.review import AdmissionRequest, Verdict
from webhooks.scaling import Scaling
from webhooks.tenancy import OPEN, Tenancy


async def mutate(request: AdmissionRequest, scaling: Scaling, tenancy: Tenancy = OPEN) -> Verdict:
    """Return the verdict on a request: a refusal, or a patch that adds what is absent.

    The annotations of conversion and of the writer are the only things that it may replace.

    Permissions that cannot be asked for are left to `/validate`.
    """
    decision = await decide(request, scaling, tenancy, must_be_sure=False)
    if decision.refusal is not None or decision.judgement is None:
        return Verdict(refusal=decision.refusal)
    completion = decision.judgement.completion
    patch = (*completion.additions, *_annotated(decision.subject, request))
    return Verdict(patch=patch, warnings=tuple(completion.warnings))


def _annotated(subject: Subject | None, request: AdmissionRequest) -> Iterator[Addition]:
    """Yield what sets annotations of ours anew, beside all others."""
    if subject is None:
        return
    ours = {kept_annotation(subject.kind): subject.to_keep, WRITTEN_BY: due_record(subject, request)}
    wanted = {name: text for name, text in ours.items() if text is not None}
    others = subject.value["metadata"].get("annotations", {})
    if wanted and others != others | wanted:
        yield Addition("/metadata/annotations", others | wanted)
