"""`/validate`: repeats the checks after other mutating webhooks, and adds warnings."""

from __future__ import annotations

from webhooks.decision import decide
from webhooks.references import Referents, advise
from webhooks.review import AdmissionRequest, Verdict
from webhooks.scaling import Scaling
from webhooks.tenancy import OPEN, Tenancy


async def validate(
    request: AdmissionRequest, scaling: Scaling, referents: Referents, tenancy: Tenancy = OPEN
) -> Verdict:
    """Return the verdict on a request: a rejection, or warnings about probably unintended values."""
    judged = await decide(request, scaling, tenancy, is_final=True)
    if isinstance(judged, Verdict):
        return judged
    if not judged.judgement.is_sound:
        return Verdict()
    subject = judged.subject
    own = subject.kind.kind, subject.name
    missing = advise(subject.references(), subject.namespace, referents, own)
    return Verdict(warnings=(*judged.advice, *missing))
