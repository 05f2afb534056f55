"""Responses of `/convert` to conversion reviews, by the contract of `apiextensions.k8s.io/v1`."""

from __future__ import annotations

import asyncio
import gc
import io
import json
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp.web import HTTPUnprocessableEntity, Response
from support.laws import read
from support.posting import Client, client_of

from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json, JsonValue, same
from apiserver.serving.bodies import SMALL_ANSWER_BYTES
from hack.calling import variants
from webhooks.app import application
from webhooks.judging import judges_of
from webhooks.referents import Referents
from webhooks.review import Judges
from webhooks.scaling import ScalingAdmission

OLD, NEW = "llmd.ai/v1alpha1", "llmd.ai/v1alpha2"
UID = "4f6a0d57-63f0-4a3f-8d31-5f0c0a5b0c11"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
SPEC = {"modelID": "m", "scaleTargetRef": TARGET}
MANY = 10_000
MEGABYTE = 1 << 20


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Serve the webhooks in this process, without a cluster."""
    scaling = ScalingAdmission(resources={}, authorizer=None)

    async def judges() -> Judges:
        return judges_of(scaling, Referents(""))

    app = application(judges, admission_limit_bytes=8 << 20, conversion_limit_bytes=64 << 20)
    async with client_of(app) as started:
        yield started


async def posted(client: Client, body: bytes) -> tuple[int, Json]:
    """Return the status code and the answer to a request."""
    response = await client.post(
        "/convert", data=io.BytesIO(body), headers={"Content-Type": "application/json"}
    )
    return response.status, await response.json()


def review(objects: JsonValue, *, desired: JsonValue = NEW, **members: JsonValue) -> Json:
    """Return a review that requests objects in a version; `members` replace those of the request."""
    request = {"uid": UID, "desiredAPIVersion": desired, "objects": objects} | members
    return {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}


async def asked(client: Client, document: JsonValue) -> Json:
    """Return the response to a review, after a check of its envelope."""
    status, answer = await posted(client, json.dumps(document).encode())
    assert status == 200
    assert (answer["kind"], answer["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    response: Json = answer["response"]
    assert response["uid"] == UID
    return response


async def converted(client: Client, objects: list[Json], *, desired: str = NEW) -> list[Json]:
    """Return the objects from a successful conversion."""
    response = await asked(client, review(objects, desired=desired))
    assert response["result"] == {"status": "Success"}
    values: list[Json] = response["convertedObjects"]
    return values


def variant(number: int = 0, *, version: str = OLD, **members: JsonValue) -> Json:
    """Return a VariantAutoscaling of the current shape."""
    value: Json = {
        "apiVersion": version,
        "kind": "VariantAutoscaling",
        "metadata": {"name": f"llama-{number}", "namespace": "ns", "uid": f"u-{number}"},
        "spec": SPEC,
    }
    return value | members


def legacy(number: int = 0) -> Json:
    """Return a VariantAutoscaling of the legacy shape, which has no target and an identifier."""
    spec = {
        "modelID": "m",
        "variantID": "m-A100-1",
        "accelerator": "A100",
        "acceleratorCount": 1,
        "sloClassRef": {"name": "c", "key": "k"},
        "variantProfile": {"perfParms": {}, "maxBatchSize": 4},
    }
    return variant(number, spec=spec)


async def test_an_empty_list_converts_to_an_empty_list(client: Client) -> None:
    """A review without objects is no failure."""
    assert await converted(client, []) == []


async def test_conversion_keeps_the_number_and_order_of_objects(client: Client) -> None:
    """The list has objects of two shapes in v1alpha1, and objects of v1alpha2."""
    makes = (legacy, variant, lambda number: variant(number, version=NEW))
    objects = [makes[number % 3](number) for number in range(30)]

    values = await converted(client, objects)

    assert [value["metadata"]["uid"] for value in values] == [f"u-{number}" for number in range(30)]
    assert {value["apiVersion"] for value in values} == {NEW}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"variantID": "x"}, id="an invalid identifier"),
        pytest.param({"notes": "n"}, id="an unknown field"),
        pytest.param({"acceleratorCount": 1.0}, id="a number of another type"),
    ],
)
async def test_one_unusual_object_changes_no_other_in_its_list(client: Client, odd: Json) -> None:
    """Each object is converted alone."""
    objects = variants.mixed_objects(variants.OLD, 120)
    for position in (3, 60, 119):
        objects[position]["spec"] |= odd

    values = await converted(client, objects)

    assert [read(value) for value in values] == [read(convert(value, NEW)) for value in objects]
    assert await converted(client, values, desired=OLD) == objects


async def test_ten_thousand_mixed_objects_are_converted_in_one_review(client: Client) -> None:
    """They keep their order, and copies of an object are converted like the first one."""
    values = await converted(client, [(legacy, variant)[number % 2](number) for number in range(MANY)])

    assert [value["metadata"]["name"] for value in values] == [f"llama-{number}" for number in range(MANY)]
    assert values[0]["spec"]["scaleTargetRef"]["name"] == "llama-0"
    assert values[MANY - 2]["spec"]["scaleTargetRef"]["name"] == f"llama-{MANY - 2}"
    assert values[MANY - 1] == variant(MANY - 1, version=NEW)


async def test_an_object_of_three_megabytes_is_converted(client: Client) -> None:
    """This exceeds the default limit of HTTP libraries."""
    value = variant(spec={"modelID": "m", "scaleTargetRef": TARGET, "notes": "n" * 3 * MEGABYTE})

    assert await converted(client, [value]) == [value | {"apiVersion": NEW}]


async def test_an_object_in_the_desired_version_is_unchanged(client: Client) -> None:
    """This includes members that no version declares."""
    value = variant(version=NEW, spec={"odd": [1, None, {"deep": "10.50"}]}, extra=1.0)

    assert await converted(client, [value]) == [value]


ODD_METADATA: dict[str, JsonValue] = {
    "null": None,
    "text": "x",
    "a list": [],
    "empty": {},
    "a name that is a number": {"name": 7},
    "labels that are text": {"name": "a", "labels": "x"},
    "annotations that are null": {"name": "a", "annotations": None},
    "annotations that are a list": {"name": "a", "annotations": ["x"]},
    "an annotation that is a number": {"name": "a", "annotations": {"x": 7}},
    "owners that are text": {"name": "a", "ownerReferences": "x"},
    "an owner that is null": {"name": "a", "ownerReferences": [None, {"controller": True}]},
    "members that no API server sends": {"name": "a", "finalizers": ["f"], "odd": {"deep": [1.0]}},
    "unicode": {"name": "ä\u2028😀", "labels": {"ключ": "значение"}},
}


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("metadata", ODD_METADATA.values(), ids=ODD_METADATA.keys())
async def test_conversion_keeps_malformed_metadata(client: Client, metadata: JsonValue, version: str) -> None:
    """A failure for one object would make every list request fail."""
    value = variant(version=version, metadata=metadata)
    other = NEW if version == OLD else OLD

    (found,) = await converted(client, [value], desired=other)

    assert found == value | {"apiVersion": other}


ODD_OBJECTS: dict[str, Json] = {
    "no metadata": {"spec": SPEC},
    "no spec": {"metadata": {"name": "a"}},
    "a spec that is null": {"metadata": {"name": "a"}, "spec": None},
    "a spec that is a list": {"metadata": {"name": "a"}, "spec": [1]},
    "a status that is text": {"metadata": {"name": "a"}, "spec": SPEC, "status": "x"},
    "a status that is null": {"metadata": {"name": "a"}, "spec": SPEC, "status": None},
    "additional members": {"metadata": {"name": "a"}, "spec": SPEC, "data": {"x": 1}},
    "only apiVersion and kind": {},
    "a modelProfile that is text": {"metadata": {"name": "a"}, "spec": {"modelProfile": "x"}},
    "a profile whose entries are numbers": {
        "metadata": {"name": "a"},
        "spec": {"modelProfile": {"accelerators": [1, 2]}},
    },
}


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("members", ODD_OBJECTS.values(), ids=ODD_OBJECTS.keys())
async def test_malformed_objects_are_restored_when_they_are_converted_back(
    client: Client, members: Json, version: str
) -> None:
    """Only empty metadata may be added or missing."""
    value = {"apiVersion": version, "kind": "VariantAutoscaling"} | members

    there = await converted(client, [value], desired=NEW if version == OLD else OLD)
    back = await converted(client, there, desired=version)

    assert without_empty_metadata(back[0]) == without_empty_metadata(value)


def without_empty_metadata(value: Json) -> Json:
    """Return an object without empty metadata: conversion adds metadata for kept fields, and leaves them."""
    return {name: item for name, item in value.items() if name != "metadata" or item}


FAILING: dict[str, tuple[list[JsonValue], str, str]] = {
    "an unknown version": ([variant()], "llmd.ai/v9", "cannot convert to llmd.ai/v9"),
    "another group": ([variant()], "apps/v1", "cannot convert to apps/v1"),
    "no version at all": ([variant()], "", "cannot convert to"),
    "an unknown kind": ([variant(kind="Pod")], NEW, "Pod"),
    "no kind": ([{"apiVersion": OLD}], NEW, "cannot convert to"),
    "one object of another group among others": (
        [variant(), {"apiVersion": "registry.volcano.sh/v1alpha1", "kind": "Model"}, variant()],
        NEW,
        "Model",
    ),
    "a number": ([variant(), 7], NEW, "no object"),
    "null": ([None], NEW, "no object"),
    "text": (["x"], NEW, "no object"),
    "a list": ([[variant()]], NEW, "no object"),
    "an object that is larger than API servers store": (
        [variant(metadata={"name": "a", "ownerReferences": [{"uid": "u" * 4 * MEGABYTE}]})],
        NEW,
        "more than 4194304 bytes",
    ),
    "more objects than are read": (
        [{"kind": "VariantAutoscaling"}] * 100_001,
        NEW,
        "100001 objects; at most 100000 are read",
    ),
    "more objects than are read, with many members": (
        [{"kind": "VariantAutoscaling", "a": 1, "b": 2, "c": 3}] * 100_001,
        NEW,
        "100001 objects; at most 100000 are read",
    ),
}


@pytest.mark.parametrize(("objects", "desired", "why"), FAILING.values(), ids=FAILING.keys())
async def test_a_review_fails_as_a_whole_if_anything_cannot_be_converted(
    client: Client, objects: list[JsonValue], desired: str, why: str
) -> None:
    """The response has a message and no objects: a partial list would be taken for a complete one."""
    response = await asked(client, review(objects, desired=desired))

    assert response["result"]["status"] == "Failure"
    assert why in response["result"]["message"]
    assert response["convertedObjects"] == []


ODD_REQUESTS = {
    "objects that are not a list": review({"a": 1}),
    "objects that are null": review(None),
    "a review of an unsupported API version": review([]) | {"apiVersion": "apiextensions.k8s.io/v1beta1"},
    "a desired version that is a number": review([], desired=7),
    "no desired version": {"kind": "ConversionReview", "request": {"uid": UID, "objects": []}},
    "no objects": {"kind": "ConversionReview", "request": {"uid": UID, "desiredAPIVersion": NEW}},
}


@pytest.mark.parametrize("document", ODD_REQUESTS.values(), ids=ODD_REQUESTS.keys())
async def test_a_malformed_request_with_a_uid_gets_a_failure_response(client: Client, document: Json) -> None:
    """The response has the uid, and a message that says that the request is malformed."""
    response = await asked(client, document)

    assert response["result"]["status"] == "Failure"
    assert "malformed" in response["result"]["message"]


UNANSWERABLE = {
    "no uid": {"kind": "ConversionReview", "request": {"desiredAPIVersion": NEW, "objects": []}},
    "an empty uid": review([], uid=""),
    "a uid that is a number": review([], uid=7),
    "a uid that is null": review([], uid=None),
    "no request": {"kind": "ConversionReview"},
    "a request that is null": {"kind": "ConversionReview", "request": None},
    "a review of another kind": review([]) | {"kind": "AdmissionReview"},
    "no kind": {"request": {"uid": UID, "desiredAPIVersion": NEW, "objects": []}},
    "a list": [],
}


@pytest.mark.parametrize("document", UNANSWERABLE.values(), ids=UNANSWERABLE.keys())
async def test_a_body_without_a_conversion_request_and_its_uid_gets_status_400(
    client: Client, document: JsonValue
) -> None:
    """The message names the expected ConversionReview."""
    status, answer = await posted(client, json.dumps(document).encode())

    assert status == 400
    assert "ConversionReview" in answer["message"]


NUMBERS: tuple[int | float, ...] = (0, -(2**63), 2**63 - 1, 0.1, 1e21, 1.5e-7, 1.7976931348623157e308, 5e-324)
"""Numbers of the types that API servers know, int64 and float64."""


@pytest.mark.parametrize("shape", [variant, legacy])
async def test_numbers_keep_their_value_there_and_back(client: Client, shape: Callable[[int], Json]) -> None:
    """An integer does not become a float, whether a version declares its field or not."""
    value = shape(0)
    value |= {"status": {"x": [*NUMBERS]}, "spec": value["spec"] | {"y": [*NUMBERS]}}

    (there,) = await converted(client, [value])
    (back,) = await converted(client, [there], desired=OLD)

    for found in (there, back):
        assert same(found["status"]["x"], [*NUMBERS])
        assert same(found["spec"]["y"], [*NUMBERS])


async def test_the_last_of_two_members_with_one_name_counts(client: Client) -> None:
    """API servers decode duplicate members in the same way."""
    text = json.dumps(review([variant()])).replace('"uid": "u-0"', '"uid": "u-0", "name": "other"')

    status, answer = await posted(client, text.encode())

    assert status == 200
    assert answer["response"]["convertedObjects"][0]["metadata"]["name"] == "other"


async def test_idle_connections_keep_no_large_responses_in_memory(client: Client) -> None:
    """Otherwise, as many clients as may connect could exhaust the memory by reading one long list each."""
    large = json.dumps(review([variant() for _ in range(5000)])).encode()
    async with client.post("/convert", data=io.BytesIO(large)) as response:
        assert len(await response.read()) > 10 * SMALL_ANSWER_BYTES
    async with client.post("/convert", data=b"{}", headers={"Connection": "close"}) as response:
        await response.read()  # the first request has ended by now

    answers = (item for item in gc.get_objects() if isinstance(item, Response))
    held = [len(item.body) for item in answers if isinstance(item.body, bytes)]
    assert max(held, default=0) <= SMALL_ANSWER_BYTES


async def test_conversion_continues_while_a_large_object_is_validated(client: Client) -> None:
    """A Model with four megabytes of small lists takes a second or two; dozens of reads are answered."""
    config: Json = {"a": [[{}] * 3] * (1 << 18)}
    model = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "m"},
        "spec": {"backends": [{"name": "a", "workers": [{"config": config}]}]},
    }
    admission = {"uid": UID, "operation": "CREATE", "namespace": "ns", "object": model}
    body = json.dumps({"kind": "AdmissionReview", "request": admission}).encode()
    reads = 0

    async def refused() -> int:
        async with client.post("/validate", data=io.BytesIO(body)) as response:
            return int((await response.json())["response"]["status"]["code"])

    judging = asyncio.create_task(refused())
    while not judging.done():
        await converted(client, [variant()])
        reads += 1

    assert await judging == HTTPUnprocessableEntity.status_code
    assert reads > 20  # two, if conversion waited
