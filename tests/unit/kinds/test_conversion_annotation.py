"""The annotation in which conversion keeps fields: its size, and damaged or forged contents."""

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
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.metadata import LIMIT_BYTES, annotation_bytes
from apiserver.schema.validation import validate

DECLARED = {SPOKE: v1alpha1.VariantAutoscaling, HUB: v1alpha2.VariantAutoscaling}


@law
def test_a_forged_annotation_changes_no_metadata_and_raises_no_error(seed: int, version: str) -> None:
    """Any user can write the annotation; metadata and kind must stay as they are."""
    value = valid(seed, version)
    text = msgspec.json.encode(forged(seed, value)).decode()
    value["metadata"].setdefault("annotations", {})[ANNOTATION] = text

    other = convert(value, OTHER[version])

    assert other["apiVersion"] == OTHER[version]
    assert other["kind"] == "VariantAutoscaling"
    assert same(bare(other)["metadata"], bare(value)["metadata"])


@law
def test_the_annotation_of_another_object_leaves_the_result_valid(seed: int, version: str) -> None:
    """A copied manifest includes its annotation, which counts only where it fits the object."""
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
        pytest.param("[" * 100_000, id="deeply nested JSON"),
        pytest.param('{"fields":[{"path":[]}]}', id="an empty path"),
        pytest.param('{"fields":7}', id="JSON of another shape"),
        pytest.param(
            '{"fields":[{"path":["spec"],"derived":1' + "0" * 5000 + "}]}", id="a number of 5001 digits"
        ),
        pytest.param('{"fields":[{"path":["spec","x"],"value":1e999}]}', id="a float out of range"),
        pytest.param(
            '{"fields":[{"path":["spec","modelID"],"derived":1e999}]}', id="a derived value out of range"
        ),
        pytest.param(
            '{"source":{"modelProfile":{"accelerators":[]},"position":1e999}}', id="a position out of range"
        ),
        pytest.param('{"source":{"modelProfile":"' + "x" * 1_000_000 + '"}}', id="larger than the limit"),
    ],
)
@pytest.mark.parametrize("version", [SPOKE, HUB])
def test_a_damaged_annotation_is_ignored(text: str, version: str) -> None:
    """The result is the same as without the annotation."""
    value = bare(convert(valid(4, OTHER[version]), version))
    expected = convert(value, OTHER[version])
    damaged = copy.deepcopy(value)
    damaged["metadata"].setdefault("annotations", {})[ANNOTATION] = text

    assert same(convert(damaged, OTHER[version]), expected)
    assert same(answered(damaged, OTHER[version]), expected)


def annotated(seed: int, version: str) -> Json:
    """Return an object with a forged annotation."""
    value = valid(seed, version)
    text = msgspec.json.encode(forged(seed, value)).decode()
    value["metadata"].setdefault("annotations", {})[ANNOTATION] = text
    return value


@pytest.mark.parametrize("draw", [valid, odd, annotated])
def test_conversion_of_json_text_equals_conversion_of_decoded_objects(
    draw: Callable[[int, str], Json],
) -> None:
    """The webhook decodes and encodes each object."""

    @law
    def check(seed: int, version: str) -> None:
        value = draw(seed, version)

        assert same(read(answered(value, OTHER[version])), read(convert(value, OTHER[version])))

    check()  # type: ignore[call-arg]


def padded(version: str, padding_bytes: int, **more: JsonValue) -> Json:
    """Return an object whose other annotations have this size."""
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
def test_fields_that_do_not_fit_beside_other_annotations_are_dropped(room_bytes: int) -> None:
    """An object beyond the server's limit would fail every list; the status is dropped first."""
    value = padded(HUB, LIMIT_BYTES - room_bytes, decision={"reason": "Steady", "message": "m" * 200})

    for other in (convert(value, SPOKE), answered(value, SPOKE)):
        returned = convert(other, HUB)
        assert annotation_bytes(other) <= LIMIT_BYTES
        assert returned["spec"] == value["spec"] or room_bytes < 140
        assert returned["status"] == value["status"] or room_bytes < 400


def test_an_object_whose_kept_fields_exceed_the_annotation_limit_is_rejected() -> None:
    """An update of an object that is already stored like this is accepted."""
    kind = VARIANT_AUTOSCALING
    large, small = padded(HUB, LIMIT_BYTES - 50), padded(HUB, LIMIT_BYTES - 500)

    [error] = complete_and_judge(kind, kind.storage_version, copy.deepcopy(large)).errors
    assert str(error).startswith("spec: Forbidden: the data that other versions cannot express takes ")
    assert complete_and_judge(kind, kind.storage_version, copy.deepcopy(small)).errors == []
    assert complete_and_judge(kind, kind.storage_version, copy.deepcopy(large), large).errors == []
