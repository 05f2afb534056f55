"""Costly objects, which are validated in a thread so that other requests are not delayed."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from support.reviews import ANYBODY, read, review, variant

from apiserver.schema.json import Json
from webhooks.decision import mutate


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
