"""What conversion keeps in an annotation: not too much, and nothing that anybody could break a list with."""

from __future__ import annotations

import copy
from collections.abc import Callable

import msgspec
import pytest
from support.laws import OTHER, answered, bare, law, read
from support.variants import forged, odd, valid

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.annotations import LIMIT_BYTES, annotation_bytes
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import same
from apiserver.schema.validation import validate

DECLARED = {SPOKE: v1alpha1.VariantAutoscaling, HUB: v1alpha2.VariantAutoscaling}


@law
def test_a_forged_annotation_reaches_neither_metadata_nor_an_error(seed: int, version: str) -> None:
    """Somebody may write anything there; name, kind and version stay what they are."""
    value = valid(seed, version)
    text = msgspec.json.encode(forged(seed, value)).decode()
    value["metadata"].setdefault("annotations", {})[ANNOTATION] = text

    other = convert(value, OTHER[version])

    assert other["apiVersion"] == OTHER[version]
    assert other["kind"] == "VariantAutoscaling"
    assert same(bare(other)["metadata"], bare(value)["metadata"])


@law
def test_the_annotation_of_another_object_leaves_what_is_valid(seed: int, version: str) -> None:
    """A manifest that was copied brings its annotation along: it counts only where it fits."""
    value, stranger = valid(seed, version), convert(valid(seed + 1, OTHER[version]), version)
    text = stranger["metadata"].get("annotations", {}).get(ANNOTATION)
    if text is not None:
        value["metadata"].setdefault("annotations", {})[ANNOTATION] = text

    other = convert(value, OTHER[version])

    assert other["spec"]["modelID"] == value["spec"]["modelID"]
    assert validate(DECLARED[OTHER[version]], other) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("not json", id="no JSON"),
        pytest.param("[" * 100_000, id="nested beyond every stack"),
        pytest.param('{"fields":[{"path":[]}]}', id="a path to nowhere"),
        pytest.param('{"fields":7}', id="JSON of another shape"),
        pytest.param(
            '{"fields":[{"path":["spec"],"derived":1' + "0" * 5000 + "}]}", id="a number beyond all"
        ),
        pytest.param('{"fields":[{"path":["spec","x"],"value":1e999}]}', id="a number without end"),
        pytest.param('{"fields":[{"path":["spec","modelID"],"derived":1e999}]}', id="such a one to compare"),
        pytest.param('{"source":{"modelProfile":{"accelerators":[]},"position":1e999}}', id="such a place"),
        pytest.param('{"source":{"modelProfile":"' + "x" * 1_000_000 + '"}}', id="larger than it may be"),
    ],
)
@pytest.mark.parametrize("version", [SPOKE, HUB])
def test_a_damaged_annotation_counts_as_none(text: str, version: str) -> None:
    """Whatever stands in the annotation, conversion goes on as if it weren't there."""
    value = bare(convert(valid(4, OTHER[version]), version))
    expected = convert(value, OTHER[version])
    damaged = copy.deepcopy(value)
    damaged["metadata"].setdefault("annotations", {})[ANNOTATION] = text

    assert same(convert(damaged, OTHER[version]), expected)
    assert same(answered(damaged, OTHER[version]), expected)


def annotated(seed: int, version: str) -> Json:
    """Return an object with an annotation that somebody made up."""
    value = valid(seed, version)
    text = msgspec.json.encode(forged(seed, value)).decode()
    value["metadata"].setdefault("annotations", {})[ANNOTATION] = text
    return value


@pytest.mark.parametrize("draw", [valid, odd, annotated])
def test_objects_as_text_convert_to_the_same(draw: Callable[[int, str], Json]) -> None:
    """The webhook's path leaves what it can undecoded; its answer is no other for that."""

    @law
    def check(seed: int, version: str) -> None:
        value = draw(seed, version)

        assert same(read(answered(value, OTHER[version])), read(convert(value, OTHER[version])))

    check()  # type: ignore[call-arg]


def padded(version: str, padding_bytes: int, **more: JsonValue) -> Json:
    """Return an object whose own annotations take so much."""
    target = {"kind": "Deployment", "name": "b"}
    spec = {"modelID": "m", "scaleTargetRef": target, "accelerator": "H100"}
    metadata = {"name": "a", "annotations": {"x": "x" * (padding_bytes - 1)}}
    return {
        "apiVersion": version,
        "kind": "VariantAutoscaling",
        "metadata": metadata,
        "spec": spec,
        "status": more,
    }


@pytest.mark.parametrize("room_bytes", [0, 1, 100, 140, 400])
def test_what_does_not_fit_beside_other_annotations_is_given_up(room_bytes: int) -> None:
    """An answer with more than the server takes would fail every list; a status is given up first."""
    value = padded(HUB, LIMIT_BYTES - room_bytes, decision={"reason": "Steady", "message": "m" * 200})

    for other in (convert(value, SPOKE), answered(value, SPOKE)):
        returned = convert(other, HUB)
        assert annotation_bytes(other) <= LIMIT_BYTES
        assert returned["spec"] == value["spec"] or room_bytes < 140
        assert returned["status"] == value["status"] or room_bytes < 400


def test_an_object_that_would_lose_something_for_want_of_room_is_refused() -> None:
    """Unless it was so before: whoever leaves it alone is not stopped."""
    kind = VARIANT_AUTOSCALING
    large, small = padded(HUB, LIMIT_BYTES - 50), padded(HUB, LIMIT_BYTES - 500)

    [error] = complete_and_judge(kind, kind.storage_version, copy.deepcopy(large)).errors
    assert str(error).startswith("spec: Forbidden: the data that other versions cannot express takes ")
    assert complete_and_judge(kind, kind.storage_version, copy.deepcopy(small)).errors == []
    assert complete_and_judge(kind, kind.storage_version, copy.deepcopy(large), large).errors == []
