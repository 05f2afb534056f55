"""The laws of conversion, on thousands of objects of every shape and of none."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from variants import forged, odd, valid

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.annotations import LIMIT_BYTES, annotation_bytes
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import same
from apiserver.schema.validation import validate
from webhooks.convert import convert_all
from webhooks.review import ConversionRequest

Path = tuple[str | int, ...]
OTHER = {SPOKE: HUB, HUB: SPOKE}
DECLARED = {SPOKE: v1alpha1.VariantAutoscaling, HUB: v1alpha2.VariantAutoscaling}
BODY = ("spec", "status")
IDENTIFIED = {"modelID", "accelerator", "acceleratorCount"}
PROFILED = {"accelerator", "acceleratorCount", "variantProfile"}

Law = Callable[[int, str], None]


def law(check: Law) -> Law:
    """Try a law on two thousand objects: hypothesis draws where, and the eight next to it are cheap."""

    @functools.wraps(check)
    def several(seed: int, version: str) -> None:
        for offset in range(8):
            check(seed + offset, version)

    seeds, versions = st.integers(0, 2**62), st.sampled_from([SPOKE, HUB])
    return settings(max_examples=250, deadline=None)(given(seeds, versions)(several))


def annotations_of(value: Json) -> Json:
    """Return the annotations of an object, whatever stands in their place."""
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def bare(value: Json) -> Json:
    """Return an object without our annotation."""
    value = copy.deepcopy(value)
    annotations = annotations_of(value)
    if annotations.pop(ANNOTATION, None) is not None and not annotations:
        del value["metadata"]["annotations"]
    return value


def read(value: Json) -> Json:
    """Return an object with the text of its annotation decoded: the order of members says nothing."""
    value = copy.deepcopy(value)
    annotations = annotations_of(value)
    if ANNOTATION in annotations:
        annotations[ANNOTATION] = msgspec.json.decode(annotations[ANNOTATION])
    return value


def answered(value: Json, version: str) -> Json:
    """Return what the webhook answers for an object that comes as text."""
    text = msgspec.Raw(msgspec.json.encode(value))
    [answer] = convert_all(ConversionRequest(uid="1", desired_api_version=version, objects=[text]))
    said: Json = msgspec.json.decode(msgspec.json.encode(answer))
    return said


def members(value: JsonValue, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all members of spec and status, those of lists included."""
    if path:
        yield path
    if isinstance(value, dict):
        for name in value if path else [name for name in BODY if name in value]:
            yield from members(value[name], (*path, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from members(item, (*path, position))


def leaves(value: Json) -> list[Path]:
    """Return the paths of members that hold no other."""
    return [path for path in members(value) if not isinstance(at(value, path), dict | list)]


def at(value: JsonValue, path: Path) -> JsonValue:
    """Return the member at a path."""
    return functools.reduce(lambda inner, part: inner[part], path, value)


def says(value: Json, path: Path, leaf: JsonValue) -> bool:
    """Tell whether an object has that value in that place."""
    return path in set(members(value)) and same(at(value, path), leaf)


def differing(one: JsonValue, other: JsonValue, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the innermost members that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one | other:
            if (name in one) != (name in other):
                yield (*path, name)
            else:
                yield from differing(one[name], other[name], (*path, name))
    elif not same(one, other):
        yield path


def edited(value: Json, path: Path) -> Json:
    """Return an object with one leaf changed to another value of its type."""
    value = copy.deepcopy(value)
    leaf, holder = at(value, path), at(value, path[:-1])
    holder[path[-1]] = (
        not leaf
        if isinstance(leaf, bool)
        else (leaf - 1 if leaf > 1 else leaf + 1)
        if isinstance(leaf, int)
        else f"{leaf}9"
    )
    return value


def without(value: Json, path: Path) -> Json:
    """Return an object without one member."""
    value = copy.deepcopy(value)
    del at(value, path[:-1])[path[-1]]
    return value


def images(path: Path) -> set[str]:
    """Return the members of the other version's spec that a member of this version's spec stands for."""
    name = str(path[1])
    identified = {"variantID"} if name in IDENTIFIED else set()
    profiled = {"modelProfile"} if name in PROFILED else PROFILED if name == "modelProfile" else set()
    return {name, *identified, *profiled}


@law
def test_there_and_back_loses_nothing(seed: int, version: str) -> None:
    """Everything is there again, digits and absences included, and the input is left as it was."""
    value = valid(seed, version)
    before = copy.deepcopy(value)

    assert same(convert(convert(value, OTHER[version]), version), before)
    assert same(value, before)


@law
def test_there_and_back_loses_nothing_of_odd_objects_either(seed: int, version: str) -> None:
    """Half-migrated objects, unknown fields and wrong types come back; only a target may be added."""
    value = bare(odd(seed, version))

    back = convert(convert(value, OTHER[version]), version)

    added = {path for path in differing(value, bare(back)) if path[0] != "metadata"}
    assert added <= {("spec", "scaleTargetRef")}
    assert not added or "scaleTargetRef" not in value["spec"]


@law
def test_what_is_valid_converts_to_what_is_valid(seed: int, version: str) -> None:
    """Validity carries over both ways."""
    other = OTHER[version]

    assert validate(DECLARED[version], valid(seed, version)) == []
    assert validate(DECLARED[other], convert(valid(seed, version), other)) == []


def test_the_longest_valid_names_convert_to_what_is_valid() -> None:
    """The identifier of the legacy shape is as long as its parts together."""
    spec = {
        "modelID": "m" * 512,
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "accelerator": "a" * 253,
        "acceleratorCount": 2**63 - 1,
        "sloClassRef": {"name": "n", "key": "k"},
        "variantProfile": {
            "perfParms": {"decodeParms": {"alpha": "1"}, "prefillParms": {"gamma": "1"}},
            "maxBatchSize": 1,
        },
    }
    value = {"apiVersion": HUB, "kind": "VariantAutoscaling", "metadata": {"name": "x"}, "spec": spec}

    assert validate(v1alpha2.VariantAutoscaling, value) == []
    assert validate(v1alpha1.VariantAutoscaling, convert(value, SPOKE)) == []


@law
def test_converting_twice_is_converting_once(seed: int, version: str) -> None:
    """Whether an object went there once or came back and went again, it is the same, annotation included."""
    other = OTHER[version]
    once = convert(valid(seed, version), other)

    assert convert(once, other) is once
    assert same(convert(convert(once, version), other), once)


@law
def test_metadata_is_untouched_but_for_one_annotation(seed: int, version: str) -> None:
    """The API server takes labels and annotations from us, so none may go missing."""
    value = valid(seed, version)

    assert same(bare(convert(value, OTHER[version]))["metadata"], value["metadata"])


@law
def test_lists_and_what_both_versions_say_keep_their_order(seed: int, version: str) -> None:
    """Conditions and candidates stay in line, and so do the members that both versions have."""
    value = valid(seed, version)
    other = convert(value, OTHER[version])
    again = convert(other, version)

    for name in [name for name in BODY if name in value]:
        both = [inner for inner in value[name] if inner in other[name]]
        assert [inner for inner in other[name] if inner in value[name]] == both
        if "conditions" in value[name]:
            assert [item["type"] for item in other[name]["conditions"]] == [
                item["type"] for item in value[name]["conditions"]
            ]
    assert same(again.get("spec"), value.get("spec"))


@law
def test_an_edit_in_the_other_version_wins_and_only_there(seed: int, version: str) -> None:
    """The edited leaf changes with what is told by it; everything else is as it was."""
    value = valid(seed, version)
    other = convert(value, OTHER[version])
    path = Random(seed).choice(leaves(other))  # noqa: S311 (examples for tests)
    changed = edited(other, path)

    back = convert(changed, version)

    told = images(path) if path[0] == "spec" else {path[1]}
    for found in differing(bare(value), bare(back)):
        assert found[0] == path[0]
        assert found[1] in told
    if says(value, path, at(other, path)):
        assert says(back, path, at(changed, path))
    assert same(bare(convert(back, OTHER[version])), bare(changed))


@law
def test_deleting_a_field_in_one_version_deletes_it_in_the_other(seed: int, version: str) -> None:
    """What was kept doesn't come back by itself."""
    value = valid(seed, version)
    other = convert(value, OTHER[version])
    paths = [path for path in members(other) if not any(isinstance(part, int) for part in path)]
    paths = [path for path in paths if path[:2] != ("spec", "scaleTargetRef")]
    path = Random(seed).choice(paths)  # noqa: S311 (as above)

    back = convert(without(other, path), version)

    assert not any(found == path for found in members(back))


@law
def test_a_replace_that_drops_the_annotation_means_what_it_says(seed: int, version: str) -> None:
    """The manifest is the whole truth to its author: what it doesn't say is gone everywhere."""
    replaced = bare(convert(valid(seed, version), OTHER[version]))

    stored = convert(replaced, version)

    assert same(bare(convert(stored, OTHER[version])), replaced)
    assert "decision" not in stored.get("status", {}) or "decision" in replaced.get("status", {})
    assert "modelProfile" not in stored["spec"] or "modelProfile" in replaced["spec"]


@pytest.mark.parametrize("version", [SPOKE, HUB])
@pytest.mark.parametrize("text", ["10.50", "10.5", "0010", "1.0e", "٣"])
def test_text_keeps_its_digits(text: str, version: str) -> None:
    """A cost is text: nothing reads it, so nothing rounds it."""
    spec = {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "variantCost": text}
    value = {"apiVersion": version, "kind": "VariantAutoscaling", "metadata": {"name": "a"}, "spec": spec}

    assert convert(value, OTHER[version])["spec"]["variantCost"] == text


@law
def test_no_object_however_odd_fails_to_convert(seed: int, version: str) -> None:
    """One failing object would make every LIST fail."""
    value = odd(seed, version)

    other = convert(value, OTHER[version])

    assert other["apiVersion"] == OTHER[version]
    assert other["kind"] == "VariantAutoscaling"
    assert msgspec.json.decode(msgspec.json.encode(other)) == other


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


KEPT_IN_FULL = {
    "a service class alone": {"sloClassRef": {"name": "classes", "key": "premium"}},
    "a cost alone": {"variantCost": "7"},
}


@pytest.mark.parametrize("version", [SPOKE, HUB])
@pytest.mark.parametrize("more", KEPT_IN_FULL.values(), ids=KEPT_IN_FULL.keys())
def test_what_both_versions_can_say_is_edited_in_both(more: Json, version: str) -> None:
    """It stands in sight, not in the annotation: an edit and a deletion are seen on the other side."""
    target = {"kind": "Deployment", "name": "a"}
    spec = {"modelID": "m", "scaleTargetRef": target} | more
    value = {"apiVersion": version, "kind": "VariantAutoscaling", "metadata": {"name": "a"}, "spec": spec}

    assert convert(value, OTHER[version]) == value | {"apiVersion": OTHER[version]}


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
    assert str(error).startswith("spec: Forbidden: what other versions cannot say takes ")
    assert complete_and_judge(kind, kind.storage_version, copy.deepcopy(small)).errors == []
    assert complete_and_judge(kind, kind.storage_version, copy.deepcopy(large), large).errors == []
