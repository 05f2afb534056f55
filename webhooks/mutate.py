"""`/mutate`: rejects an object with the complete list of errors, or fills in defaults.

It receives the raw object before the API server validates the schema. It must report all errors at once,
because the server would report only those that its schema covers.
"""

from __future__ import annotations

from functools import partial

from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.conversion import kept_annotation
from apiserver.schema.filler import Addition
from webhooks.admission import Subject
from webhooks.authorship import due_record
from webhooks.decision import Assessment, decide
from webhooks.review import AdmissionRequest, AdmissionResponse
from webhooks.scaling import Scaling
from webhooks.tenancy import OPEN, Tenancy


async def mutate(request: AdmissionRequest, scaling: Scaling, tenancy: Tenancy = OPEN) -> AdmissionResponse:
    """Return the response to a request: a rejection, or a patch that adds absent fields.

    The patch may replace only the annotations of conversion and of the writer.

    Permissions that cannot be checked are left to `/validate`.
    """
    return await decide(request, scaling, tenancy, partial(_patched, request), is_final=False)


def _patched(request: AdmissionRequest, assessed: Assessment) -> AdmissionResponse:
    completion = assessed.judgement.completion
    patch = (*completion.additions, *_annotated(assessed.subject, request))
    return AdmissionResponse(patch=patch, warnings=tuple(completion.warnings))


def _annotated(subject: Subject, request: AdmissionRequest) -> list[Addition]:
    """Return the patch operation that sets our annotations and keeps all others; none if they are set."""
    record = due_record(subject, request)
    if record is None and subject.to_keep is None:
        return []
    ours = {kept_annotation(subject.kind): subject.to_keep, WRITTEN_BY: record}
    others = subject.value["metadata"].get("annotations", {})
    all_ = others | {name: text for name, text in ours.items() if text is not None}
    return [] if others == all_ else [Addition("/metadata/annotations", all_)]
