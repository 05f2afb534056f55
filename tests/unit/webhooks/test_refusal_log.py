"""The log lines of refused requests."""

from __future__ import annotations

import asyncio
import json

from support.logs import capture_logs
from support.reviews import ANYBODY, NOBODY, review, variant

from apiserver.schema.json import Json
from apiserver.serving.bodies import Answer, Reply
from webhooks.app import application
from webhooks.judging import judges_of

ANSWERS = application(
    lambda: judges_of(ANYBODY, NOBODY), admission_limit_bytes=1 << 20, conversion_limit_bytes=1 << 20
)


def asked(answer: Answer, value: Json, uid: str) -> bool:
    """Return whether an object is allowed, as a request that is answered at once."""
    request = review(value) | {"uid": uid}
    reply = answer(json.dumps({"kind": "AdmissionReview", "request": request}).encode())
    assert isinstance(reply, Reply)
    return bool(json.loads(reply.body)["response"]["allowed"])


async def test_refused_requests_are_logged_in_order_after_the_responses() -> None:
    """A line has the object and the fields with errors, and no values. Allowed requests have no line."""
    with capture_logs() as lines:
        allowed = [
            asked(ANSWERS["/mutate"].answer, variant(accelerator=""), "u1"),
            asked(ANSWERS["/mutate"].answer, variant(), "u2"),
            asked(ANSWERS["/validate"].answer, variant(modelID=7, accelerator=""), "u3"),
        ]
        before = [*lines]
        await asyncio.sleep(0)

    same = {"kind": "VariantAutoscaling", "namespace": "ns", "name": "llama", "why": ""}
    line = {"event": "refused", "log_level": "info"} | same
    assert allowed == [False, True, False]
    assert before == []
    assert lines == [
        line | {"webhook": "mutate", "uid": "u1", "fields": ["spec.accelerator"]},
        line | {"webhook": "validate", "uid": "u3", "fields": ["spec.modelID", "spec.accelerator"]},
    ]
