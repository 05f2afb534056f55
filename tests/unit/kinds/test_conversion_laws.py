"""The laws of conversion, on thousands of objects of every shape and of none."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from random import Random

import msgspec
import pytest
from support.laws import OTHER, bare, law
from support.variants import odd, valid

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import HUB, SPOKE, convert
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import same
from apiserver.schema.validation import validate

Path = tuple[str | int, ...]
DECLARED = {SPOKE: v1alpha1.VariantAutoscaling, HUB: v1alpha2.VariantAutoscaling}
BODY = ("spec", "status")
IDENTIFIED = {"modelID", "accelerator", "acceleratorCount"}
PROFILED = {"accelerator", "acceleratorCount", "variantProfile"}


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
    path = Random(seed).choice(leaves(other))
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
    path = Random(seed).choice(paths)

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
