"""The announcement of a status between the writes of spec and status, and its protection from misuse."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.variants import valid

from apiserver.kinds.llmd.conversion import SPOKE, convert
from apiserver.kinds.llmd.shapes import LEGACY, RELEASES, Shape, in_shape
from apiserver.schema.json import Json, same
from controller.commands.upgrade.status_to_come import (
    ANNOTATION,
    announcing,
    with_announced_status,
    without_announcement,
)

LEAST = RELEASES["v0.4.2"]
BATCH = {"accelerator": "H100", "numReplicas": 4, "itlAverage": "1", "ttftAverage": "2", "load": {}}
OLD = {"currentAlloc": BATCH, "desiredOptimizedAlloc": {"accelerator": "H100", "numReplicas": 2}}
COMPLETE = OLD | {"currentAlloc": BATCH | {"maxBatch": 8, "variantCost": "20"}}
PLAIN = {"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"modelID": "m"}}


def announced(wanted: Json, status: Json) -> Json:
    """Return the object after the write of its spec, which does not change the status."""
    return announcing(PLAIN | {"status": wanted}, OLD) | {"status": status}


def test_an_interrupted_run_resumes_from_the_announcement() -> None:
    """It contains what the status takes from the old spec, and which allocations are removed."""
    shuffled = dict(reversed(OLD.items()))

    assert with_announced_status(announced(COMPLETE, shuffled), LEAST) == PLAIN | {"status": COMPLETE}
    without = {"desiredOptimizedAlloc": OLD["desiredOptimizedAlloc"]}
    assert with_announced_status(announced(without, OLD), LEAST) == PLAIN | {"status": without}


@settings(max_examples=often(100))
@given(st.integers(0, 2**62), st.sampled_from([*RELEASES.values()]))
def test_a_run_interrupted_between_two_writes_ends_like_an_uninterrupted_one(seed: int, shape: Shape) -> None:
    """This holds for objects of every shape and for every release."""
    for offset in range(8):
        item = convert(valid(seed + offset, SPOKE), SPOKE)
        wanted = in_shape(item, shape).value
        half = announcing(wanted, item.get("status")) | {"status": item.get("status")}
        if "status" in item:
            assert same(in_shape(with_announced_status(half, shape), shape).value, wanted), seed + offset


def test_a_status_that_another_client_wrote_is_kept() -> None:
    """The announced status itself is kept, too; the annotation is removed."""
    other = {"actuation": {"applied": False}}

    assert with_announced_status(announced(COMPLETE, other), LEAST) == PLAIN | {"status": other}
    assert with_announced_status(announced(COMPLETE, COMPLETE), LEAST) == PLAIN | {"status": COMPLETE}


def test_a_forged_announcement_cannot_change_a_complete_status() -> None:
    """An announcement adds only what a spec can state, and removes no complete allocation."""
    genuine = announced(COMPLETE, COMPLETE)
    digest = json.loads(announcing(PLAIN | {"status": {}}, COMPLETE)["metadata"]["annotations"][ANNOTATION])
    forgery = digest | {
        "gone": ["currentAlloc", "desiredOptimizedAlloc", "actuation"],
        "filled": {
            "currentAlloc": {"accelerator": "B200", "numReplicas": 0, "maxBatch": 1, "variantCost": "0"},
            "desiredOptimizedAlloc": {"numReplicas": 100, "accelerator": "B200"},
            "conditions": {"accelerator": "B200"},
        },
    }
    genuine["metadata"]["annotations"][ANNOTATION] = json.dumps(forgery)

    assert with_announced_status(genuine, LEAST) == PLAIN | {"status": COMPLETE}


def test_the_announcement_of_a_long_status_is_short() -> None:
    """All annotations of an object share 256 KiB."""
    long = OLD | {"conditions": [{"type": str(number), "message": "x" * 32_768} for number in range(32)]}
    found = announcing(PLAIN | {"status": COMPLETE}, long)

    assert len(found["metadata"]["annotations"][ANNOTATION]) < 500


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"status": 1}',
        '{"other": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"status": "", "gone": [], "filled": {"currentAlloc": {"maxBatch": ""}}}',
    ],
)
def test_an_invalid_announcement_has_no_effect(text: str) -> None:
    """The annotation is only removed."""
    value = PLAIN | {"metadata": {"name": "a", "annotations": {ANNOTATION: text}}}

    assert (
        with_announced_status(value, LEAST)
        == without_announcement(value)
        == PLAIN | {"metadata": {"name": "a"}}
    )


def test_an_announcement_has_no_effect_on_a_shape_that_accepts_any_status() -> None:
    """The legacy shape needs no members from the spec."""
    assert with_announced_status(announced(COMPLETE, OLD), LEGACY) == PLAIN | {"status": OLD}


def test_an_object_without_an_announcement_is_returned_unchanged() -> None:
    """This includes objects with invalid metadata."""
    shapes: tuple[Json, ...] = (PLAIN, {}, {"metadata": None}, {"metadata": {"annotations": []}})
    for value in shapes:
        assert with_announced_status(value, LEAST) is value
