"""`/mutate`: refuses with the complete list of errors, or fills in the defaults.

It sees the raw object before the server checks the schema, so it must say everything at once; the server
would name only what its schema knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.kinds.conversion import kept_annotation
from apiserver.schema.filler import Addition
from webhooks.admission import Subject
from webhooks.decision import decide
from webhooks.review import AdmissionRequest, Verdict
from webhooks.scaling import Scaling


async def mutate(request: AdmissionRequest, scaling: Scaling) -> Verdict:
    """Return the verdict on a request: a refusal, or a patch that adds what is absent.

    The annotation of conversion is the one thing that it may replace.

    Permissions that cannot be asked for are left to `/validate`.
    """
    decision = await decide(request, scaling, must_be_sure=False)
    if decision.refusal is not None or decision.judgement is None:
        return Verdict(refusal=decision.refusal)
    completion = decision.judgement.completion
    patch = (*completion.additions, *_kept(decision.subject))
    return Verdict(patch=patch, warnings=tuple(completion.warnings))


def _kept(subject: Subject | None) -> Iterator[Addition]:
    """Yield what sets the annotation of conversion anew, beside all others."""
    if subject is None or subject.to_keep is None:
        return
    others = subject.value["metadata"].get("annotations", {})
    yield Addition("/metadata/annotations", others | {kept_annotation(subject.kind): subject.to_keep})
