"""The log lines of refused requests."""

from __future__ import annotations

import json

from support.logs import capture_logs
from support.posting import Client, client_of
from support.reviews import ANYBODY, NOBODY, review, variant

from apiserver.schema.json import Json
from webhooks.app import Judges, application
from webhooks.judging import judges_of


async def judges() -> Judges:
    """Return the decision functions of a process without a cluster."""
    return judges_of(ANYBODY, NOBODY)


async def asked(client: Client, path: str, value: Json, uid: str) -> bool:
    """Return whether an object is allowed."""
    request = review(value) | {"uid": uid}
    answer = await client.post(path, data=json.dumps({"kind": "AdmissionReview", "request": request}))
    return bool((await answer.json())["response"]["allowed"])


async def test_refused_requests_are_logged() -> None:
    """A line has the object and the fields with errors, and no values. Allowed requests have no line."""
    app = application(judges, admission_limit_bytes=1 << 20, conversion_limit_bytes=1 << 20)
    async with client_of(app) as client:
        with capture_logs() as lines:
            allowed = [
                await asked(client, "/mutate", variant(accelerator=""), "u1"),
                await asked(client, "/mutate", variant(), "u2"),
                await asked(client, "/validate", variant(modelID=7, accelerator=""), "u3"),
            ]

    same = {"kind": "VariantAutoscaling", "namespace": "ns", "name": "llama", "why": ""}
    line = {"event": "refused", "log_level": "info"} | same
    assert allowed == [False, True, False]
    assert lines == [
        line | {"webhook": "mutate", "uid": "u1", "fields": ["spec.accelerator"]},
        line | {"webhook": "validate", "uid": "u3", "fields": ["spec.modelID", "spec.accelerator"]},
    ]
