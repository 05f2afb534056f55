"""`/mutate`: refuses with the complete list of errors, or fills in the defaults.

It sees the raw object before the server checks the schema, so it must say everything at once; the server
would name only what its schema knows.
"""

from __future__ import annotations

from webhooks.decision import decide
from webhooks.review import AdmissionRequest, Verdict
from webhooks.scaling import Scaling


async def mutate(request: AdmissionRequest, scaling: Scaling) -> Verdict:
    """Return the verdict on a request: a refusal, or a patch that only adds.

    Permissions that cannot be asked for are left to `/validate`.
    """
    decision = await decide(request, scaling, must_be_sure=False)
    if decision.refusal is not None or decision.judgement is None:
        return Verdict(refusal=decision.refusal)
    completion = decision.judgement.completion
    return Verdict(patch=tuple(completion.additions), warnings=tuple(completion.warnings))
