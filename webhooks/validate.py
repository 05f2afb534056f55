"""`/validate`: repeats the checks after other mutating webhooks, and adds warnings."""

from __future__ import annotations

from functools import partial

from webhooks.decision import Assessment, decide
from webhooks.references import Referents, advise
from webhooks.review import AdmissionRequest, AdmissionResponse
from webhooks.scaling import Scaling
from webhooks.tenancy import OPEN, Tenancy


async def validate(
    request: AdmissionRequest, scaling: Scaling, referents: Referents, tenancy: Tenancy = OPEN
) -> AdmissionResponse:
    """Return the response to a request: a rejection, or warnings about probably unintended values."""
    return await decide(request, scaling, tenancy, partial(_warned, referents), is_final=True)


def _warned(referents: Referents, assessed: Assessment) -> AdmissionResponse:
    if not assessed.judgement.is_sound:
        return AdmissionResponse()
    subject = assessed.subject
    own = subject.kind.kind, subject.name
    missing = advise(subject.references(), subject.value, referents, own)
    return AdmissionResponse(warnings=(*assessed.advice, *missing))
