"""Reviews: complete lists of errors, what is validated in a thread, what is logged, and what others scale."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

import pytest
from support.logs import capture_logs
from support.manifests import autoscaler
from support.posting import Client, client_of
from support.reviews import ANYBODY, NOBODY, mutate, read, review, variant

from apiserver.cluster.cache import Change
from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from apiserver.schema.paths import FieldPath
from webhooks.app import application
from webhooks.decision import mutate as ask_mutate
from webhooks.decision import validate as ask_validate
from webhooks.judging import judges_of
from webhooks.referents import Referents, ScalerIndex, autoscaler_only, targets_only
from webhooks.review import AdmissionRequest, Judges, decode_admission


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
    deciding = asyncio.create_task(ask_mutate(read(request_), ANYBODY))
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
    claims, kind, key = ScalerIndex(), "AutoscalingPolicyBinding", ("ns", "b")
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


DEPTHS = (101, 150, 300, 1000, 5000, 9900)
"""Levels of `config`, more than the allowed 100; API servers accept 9,900."""


def causes(refusal: Json | None) -> list[tuple[str, str]]:
    """Return the field and the message of each error."""
    return [(cause["field"], cause["message"]) for cause in refusal["details"]["causes"]] if refusal else []


def fields(refusal: Json | None) -> list[str]:
    """Return the fields with errors."""
    return [field for field, _ in causes(refusal)]


def test_errors_in_metadata_are_listed_with_those_in_the_spec() -> None:
    """They come first; the API server would report them only once the spec is correct."""
    bad = variant(accelerator="") | {
        "metadata": {"name": "v", "labels": {"a b": "ok", "app": "-"}, "annotations": {"/x": "y"}}
    }

    found = fields(mutate(review(bad)).refusal)

    assert found == ["metadata.labels", "metadata.labels", "metadata.annotations", "spec.accelerator"]


def test_errors_in_metadata_alone_are_left_to_the_api_server() -> None:
    """The API server rejects them with its own messages."""
    bad = variant() | {"metadata": {"name": "v", "labels": {"app": "-"}}}

    assert mutate(review(bad)).refusal is None


def model(*, config: str, image: str = "x") -> bytes:
    """Return the review of a create of a Model with a worker with this JSON text as its config."""
    worker = {"image": image, "config": "CONFIG"}
    backend = {"name": "b", "type": "vLLM", "modelURI": "hf://a/b", "minReplicas": 1, "maxReplicas": 1}
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "m"},
        "spec": {"backends": [backend | {"workers": [worker]}]},
    }
    request = {"uid": "u", "operation": "CREATE", "namespace": "ns", "object": value, "oldObject": None}
    text = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    return text.replace('"CONFIG"', config).encode()


def nested(levels: int) -> str:
    """Return JSON text of alternating lists and objects, nested this many levels deep."""
    half = levels // 2
    return '{"a":[' * half + "[0]" * (levels % 2) + "]}" * half


async def refusals(request: AdmissionRequest) -> list[Json | None]:
    """Return the rejections by both webhooks."""
    decided = [ask_mutate(request, ANYBODY), ask_validate(request, ANYBODY, NOBODY)]
    return [(await each).refusal for each in decided]


@pytest.mark.parametrize("levels", DEPTHS)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_a_config_nested_too_deeply_is_rejected_at_its_field(path: str, levels: int) -> None:
    """Other errors are listed as well, however deep the nesting."""

    async def judges() -> Judges:
        return judges_of(ANYBODY, Referents(""))

    app = application(judges, admission_limit_bytes=1 << 20, conversion_limit_bytes=1 << 20)

    async with client_of(app) as client:
        response = await client.post(path, data=model(config=nested(levels), image="a b"))
        refusal = (await response.json())["response"]["status"]

    where = "spec.backends[0].workers[0]"
    assert refusal["code"] == 422
    assert causes(refusal) == [
        (f"{where}.image", 'Invalid value: "a b": must not contain whitespace'),
        (f"{where}.config", 'Invalid value: "...": must not be nested more than 100 levels deep'),
    ]


async def test_a_config_nested_a_hundred_levels_deep_is_accepted() -> None:
    """A hundred levels are the limit."""
    request = decode_admission(model(config=nested(100)))

    assert await refusals(request) == [None, None]


async def test_a_small_review_of_an_object_that_defaults_enlarge_gets_the_errors_of_a_large_object() -> None:
    """Of 15,000 targets only the allowed 16 are validated, and the error before them is not left out."""
    route = {
        "apiVersion": "networking.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {"name": "r"},
        "spec": {"rules": [{"targetModels": [{}] * 15_000}]},
    }
    request = read(review(route))

    for refusal in await refusals(request):
        assert fields(refusal) == [
            "spec.modelName",
            "spec.rules[0].targetModels",
            *(f"spec.rules[0].targetModels[{position}].modelServerName" for position in range(16)),
        ]


OLD, NEW = SPOKE, HUB
UID = "4f6a0d57-63f0-4a3f-8d31-5f0c0a5b0c11"
NESTINGS = (300, *range(960, 1000), 1_500, 9_900)
"""Levels of nested metadata: decoders fail at about a thousand, API servers at ten thousand."""


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Serve conversion in this process."""

    async def judges() -> Judges:
        return {}

    app = application(judges, admission_limit_bytes=1 << 20, conversion_limit_bytes=1 << 20)
    async with client_of(app) as started:
        yield started


async def converted(
    client: Client, objects: list[Json], desired: str, levels: int, *, closing: str = "}"
) -> Json:
    """Return the response to a conversion review, in which nested objects replace the value HERE."""
    request = {"uid": UID, "desiredAPIVersion": desired, "objects": objects}
    text = json.dumps({"kind": "ConversionReview", "request": request})
    nested = '{"f:a":' * levels + "{}" + closing * levels
    answer = await client.post("/convert", data=text.replace('"HERE"', nested).encode())
    response: Json = (await answer.json())["response"]
    return response


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_deeply_nested_metadata_hides_no_object_of_a_list(client: Client, version: str) -> None:
    """The API server accepts it, and restores metadata after a conversion."""
    objects = [variant(version=version) for _ in range(3)]
    desired = NEW if version == OLD else OLD
    for levels in NESTINGS:
        deep = variant(version=version, metadata={"managedFields": [{"fieldsV1": "HERE"}]})

        response = await converted(client, [objects[0], deep, objects[2]], desired, levels)

        assert response["result"] == {"status": "Success"}
        found = response["convertedObjects"]
        del found[1]["metadata"]["managedFields"]
        assert found == [value | {"apiVersion": desired} for value in objects]


async def test_deep_nesting_without_an_end_fails_with_a_message_and_the_uid(client: Client) -> None:
    """It remains invalid after what is nested too deeply was removed."""
    deep = variant(deep="HERE")

    response = await converted(client, [deep], NEW, 50_000, closing="")

    assert response["uid"] == UID
    assert response["result"]["status"] == "Failure"
