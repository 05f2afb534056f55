"""Reviews: what is validated in a thread, what is logged, and what others scale."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import pytest
from support.logs import capture_logs
from support.manifests import autoscaler
from support.posting import Client, client_of
from support.reviews import ANYBODY, NOBODY, read, review, variant

from apiserver.cluster.cache import Change
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from webhooks.app import application
from webhooks.decision import mutate
from webhooks.judging import judges_of
from webhooks.referents import Claims, autoscaler_only, targets_only
from webhooks.review import Judges


def route(count: int) -> Json:
    """Return a ModelRoute with this many rules, each with a regular expression."""
    rules = [{"modelMatch": {"uri": {"regex": f"^/v{number}"}}} for number in range(count)]
    metadata = {"name": "r", "namespace": "ns"}
    return {
        "apiVersion": "networking.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": metadata,
        "spec": {"rules": rules},
    }


REQUESTS: Final[dict[str, tuple[Json, bool]]] = {
    "an object of usual size": (review(variant()), False),
    "two regular expressions": (review(route(2)), False),
    "three regular expressions, each of which may take 40 ms": (review(route(3)), True),
    "three in the stored object, which is validated if the new one is invalid": (
        review(route(0), route(3)),
        True,
    ),
    "an object of 64 KiB": (review(variant(modelID="m" * (64 << 10))), True),
}


@pytest.mark.parametrize(("request_", "is_apart"), REQUESTS.values(), ids=REQUESTS.keys())
async def test_only_costly_objects_are_validated_in_a_thread(request_: Json, *, is_apart: bool) -> None:
    """All others are validated without a wait."""
    deciding = asyncio.create_task(mutate(read(request_), ANYBODY))
    await asyncio.sleep(0)

    assert deciding.done() is not is_apart
    await deciding


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


TARGET = Reference(path=FieldPath(), group="apps", kind="Deployment", name="llama", is_scaled=True)
OTHER_TARGET = Reference(path=FieldPath(), group="apps", kind="Deployment", name="qwen", is_scaled=True)


def binding(*names: str) -> Json:
    """Return a binding of some Deployments, as reduced for the cache."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment"}
    params = [{"target": {"targetRef": reference | {"name": name}}} for name in names]
    value = {"spec": {"policyRef": {"name": "p"}, "optimizerConfiguration": {"params": params}}}
    return targets_only("registry.volcano.sh", "AutoscalingPolicyBinding")(value)


def test_the_index_follows_added_changed_and_deleted_objects() -> None:
    """Only targets in the namespace of the object are its own."""
    claims, kind, key = Claims(), "AutoscalingPolicyBinding", ("ns", "b")
    one, two = binding("llama", "qwen"), binding("qwen")
    claims.take(kind, Change(key=key, old=None, new=one))
    assert claims.of(TARGET, "ns") == [((kind, "b"), one)]
    assert claims.of(TARGET, "elsewhere") == []

    claims.take(kind, Change(key=key, old=one, new=two))
    assert claims.of(TARGET, "ns") == []
    assert claims.of(OTHER_TARGET, "ns") == [((kind, "b"), two)]
    claims.take(kind, Change(key=key, old=two, new=None))
    assert claims.of(OTHER_TARGET, "ns") == []


def test_objects_with_unreadable_targets_claim_none() -> None:
    """They were stored without admission, and must not end the watch."""
    reduce = targets_only("llmd.ai", "VariantAutoscaling")

    assert reduce({"spec": {"scaleTargetRef": "llama"}}) == {"targets": []}
    assert reduce({}) == {"targets": []}


def test_an_autoscaler_keeps_its_record() -> None:
    """By it, the autoscaler is compared with objects that are written later."""
    made = autoscaler_only(autoscaler("llama"))

    assert made["targets"] == [("apps", "Deployment", "llama")]
    assert made["autoscaler"].name == "llama"
