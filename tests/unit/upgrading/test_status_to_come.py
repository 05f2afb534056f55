"""A status that is announced is decided again, and announcing brings nobody a status of his own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.variants import valid

from apiserver.kinds.llmd.conversion import SPOKE, convert
from apiserver.kinds.llmd.shapes import LEGACY, RELEASES, Shape, in_shape
from apiserver.schema.json import Json
from apiserver.schema.undecoded import same
from apiserver.upgrading.status_to_come import ANNOTATION, announcing, resumed, without_announcement

LEAST = RELEASES["v0.4.2"]
BATCH = {"accelerator": "H100", "numReplicas": 4, "itlAverage": "1", "ttftAverage": "2", "load": {}}
OLD = {"currentAlloc": BATCH, "desiredOptimizedAlloc": {"accelerator": "H100", "numReplicas": 2}}
COMPLETE = OLD | {"currentAlloc": BATCH | {"maxBatch": 8, "variantCost": "20"}}
PLAIN = {"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"modelID": "m"}}


def announced(wanted: Json, status: Json) -> Json:
    """Return the object after the write of its spec, which leaves the status alone."""
    return announcing(PLAIN | {"status": wanted}, OLD) | {"status": status}


def test_an_interrupted_run_goes_on_with_what_was_announced() -> None:
    """What the old spec said, and what went because nobody said it."""
    shuffled = dict(reversed(OLD.items()))

    assert resumed(announced(COMPLETE, shuffled), LEAST) == PLAIN | {"status": COMPLETE}
    without = {"desiredOptimizedAlloc": OLD["desiredOptimizedAlloc"]}
    assert resumed(announced(without, OLD), LEAST) == PLAIN | {"status": without}


@settings(max_examples=often(100))
@given(st.integers(0, 2**62), st.sampled_from([*RELEASES.values()]))
def test_a_run_that_is_cut_off_between_two_writes_ends_like_one_that_is_not(seed: int, shape: Shape) -> None:
    """For objects of every shape and every release."""
    for offset in range(8):
        item = convert(valid(seed + offset, SPOKE), SPOKE)
        wanted = in_shape(item, shape).value
        half = announcing(wanted, item.get("status")) | {"status": item.get("status")}
        if "status" in item:
            assert same(in_shape(resumed(half, shape), shape).value, wanted), seed + offset


def test_a_status_that_somebody_else_wrote_stays() -> None:
    """As does the announced one itself; the annotation goes."""
    other = {"actuation": {"applied": False}}

    assert resumed(announced(COMPLETE, other), LEAST) == PLAIN | {"status": other}
    assert resumed(announced(COMPLETE, COMPLETE), LEAST) == PLAIN | {"status": COMPLETE}


def test_whoever_may_write_a_spec_gets_no_status_written() -> None:
    """An announcement fills in what a spec can say, takes nothing that is complete, and adds nothing else."""
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

    assert resumed(genuine, LEAST) == PLAIN | {"status": COMPLETE}


def test_a_long_status_is_announced_in_few_words() -> None:
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
        '{"status": "", "gone": [], "filled": {"currentAlloc": {"maxBatch": ""}}}',
    ],
)
def test_an_annotation_that_is_not_ours_changes_nothing(text: str) -> None:
    """It is only taken away."""
    value = PLAIN | {"metadata": {"name": "a", "annotations": {ANNOTATION: text}}}

    assert resumed(value, LEAST) == without_announcement(value) == PLAIN | {"metadata": {"name": "a"}}


def test_a_shape_that_takes_any_status_awaits_none() -> None:
    """Nothing of it has to be decided."""
    assert resumed(announced(COMPLETE, OLD), LEGACY) == PLAIN | {"status": OLD}


def test_an_object_that_announces_nothing_is_itself() -> None:
    """Whatever its shape."""
    shapes: tuple[Json, ...] = (PLAIN, {}, {"metadata": None}, {"metadata": {"annotations": []}})
    for value in shapes:
        assert resumed(value, LEAST) is value
