"""Conversion of objects that are nested as deeply as API servers accept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from support.posting import Client, client_of
from support.reviews import variant

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.schema.json import Json
from webhooks.app import Judges, application

OLD, NEW = SPOKE, HUB
UID = "4f6a0d57-63f0-4a3f-8d31-5f0c0a5b0c11"
DEPTHS = (300, *range(960, 1000), 1_500, 9_900)
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
    for levels in DEPTHS:
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
