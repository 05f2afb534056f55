"""Objects and lists that are deep or large."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from apiserver.cluster.errors import Unavailable
from apiserver.cluster.resource import CONFIG_MAPS
from apiserver.cluster.transport import decode, events_of

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster

    from .conftest import FakeApiServer

BRACKETS = b'"]}\\"[{\\\\"'
"""A string with brackets, quotes and backslashes."""


def deep(levels: int) -> bytes:
    """Return an object with a member that is nested deeply, and members before and after it."""
    nested = b'{"a":[' * (levels // 2) + BRACKETS + b"]}" * (levels // 2)
    return (
        b'{"metadata":{"name":%b,"resourceVersion":"7"},"deep":%b,"shallow":[{"a":1}],"more":%b,"last":[]}'
        % (BRACKETS, nested, nested)
    )


def inner(value: object) -> tuple[int, object]:
    """Return the number of levels of a nested value, and what is in the innermost."""
    levels = 0
    while isinstance(value, (dict, list)):
        value = value["a"] if isinstance(value, dict) else value[0]
        levels += 1
    return levels, value


def test_a_deep_object_hides_no_other_object_of_a_list() -> None:
    """What is too deep in it is null; everything else is as it was."""
    answer = decode(b'{"items":[{"b":[1]},%b,{"c":{"d":2}}]}' % deep(9_000))
    assert isinstance(answer, dict)
    before, found, after = answer["items"]

    assert (before, after) == ({"b": [1]}, {"c": {"d": 2}})
    assert found["metadata"] == {"name": ']}"[{\\', "resourceVersion": "7"}
    assert found["shallow"] == [{"a": 1}]
    assert found["last"] == []
    for name in ("deep", "more"):
        levels, value = inner(found[name])
        assert 200 < levels < 256
        assert value is None


def test_an_object_of_a_usual_depth_is_complete() -> None:
    """Free JSON in our kinds has at most 100 levels."""
    answer = decode(deep(200))
    assert isinstance(answer, dict)
    assert inner(answer["deep"]) == (200, ']}"[{\\')


async def test_a_deep_object_does_not_end_a_watch() -> None:
    """Otherwise the watch would be repeated, with the same error."""

    async def chunks() -> AsyncIterator[bytes]:
        for item in (deep(9_000), deep(0)):
            yield b'{"type":"MODIFIED","object":%b}\n' % item

    assert [event.resource_version async for event in events_of(chunks())] == ["7", "7"]


def test_large_deep_json_is_read_in_linear_time() -> None:
    """All objects of a page are read at once."""
    began = time.process_time()
    decode(b"[%b]" % b",".join([deep(2_000)] * 200 + [b'"%b"' % (BRACKETS[1:-1] * 100_000)]))
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("body", [b"[" * 5_000, b"]" * 5_000, b"[" * 5_000 + b"]" * 4_999, b'{"a":"'])
def test_incomplete_json_is_unavailable(body: bytes) -> None:
    """A connection can break off."""
    with pytest.raises(Unavailable):
        decode(body)


async def test_a_page_of_large_objects_is_read_in_smaller_ones(cluster: Cluster, api: FakeApiServer) -> None:
    """Five hundred objects of a megabyte would take all memory; later pages have the usual size again."""
    for number in range(100):
        text = "x" * (800_000 if number < 40 else 1)
        made = {"metadata": {"name": f"c{number:03}"}, "data": {"text": text}}
        api.put(f"/api/v1/namespaces/default/configmaps/c{number:03}", made)
    listed = await cluster.list(CONFIG_MAPS, page_size=64)

    assert [item["metadata"]["name"] for item in listed["items"]] == [f"c{n:03}" for n in range(100)]
    limits = [request.query["limit"] for request in api.requests]
    assert (limits[:2], limits[-1]) == (["64", "8"], "64")
