"""Laws of conversion, checked on thousands of objects of every shape, valid and malformed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from random import Random

import msgspec
import pytest
from differential.stored import pruned
from support.laws import OTHER, bare, law
from support.variants import odd, valid

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import HUB, SPOKE, convert
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.model import node_of
from apiserver.schema.validation import validate

Path = tuple[str | int, ...]
DECLARED = {SPOKE: v1alpha1.VariantAutoscaling, HUB: v1alpha2.VariantAutoscaling}
BODY = ("spec", "status")
IDENTIFIED = {"modelID", "accelerator", "acceleratorCount"}
PROFILED = {"accelerator", "acceleratorCount", "variantProfile"}


def members(value: JsonValue, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all members of spec and status, including those in lists."""
    if path:
        yield path
    if isinstance(value, dict):
        for name in value if path else [name for name in BODY if name in value]:
            yield from members(value[name], (*path, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from members(item, (*path, position))


def leaves(value: Json) -> list[Path]:
    """Return the paths of members that contain no others."""
    return [path for path in members(value) if not isinstance(at(value, path), dict | list)]


def at(value: JsonValue, path: Path) -> JsonValue:
    """Return the member at a path."""
    return functools.reduce(lambda inner, part: inner[part], path, value)


def says(value: Json, path: Path, leaf: JsonValue) -> bool:
    """Tell whether an object has this value at a path."""
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
    """Return the members of the other version's spec that correspond to a member of this version's."""
    name = str(path[1])
    identified = {"variantID"} if name in IDENTIFIED else set()
    profiled = {"modelProfile"} if name in PROFILED else PROFILED if name == "modelProfile" else set()
    return {name, *identified, *profiled}


@law
def test_converting_there_and_back_loses_nothing(seed: int, version: str) -> None:
    """Digits and absent fields are the same, too, and the input is not changed."""
    value = valid(seed, version)
    before = copy.deepcopy(value)

    assert same(convert(convert(value, OTHER[version]), version), before)
    assert same(value, before)


@law
def test_converting_malformed_objects_there_and_back_loses_nothing(seed: int, version: str) -> None:
    """Half-migrated objects, unknown fields and wrong types are restored; only a target may be added."""
    value = bare(odd(seed, version))

    back = convert(convert(value, OTHER[version]), version)

    added = {path for path in differing(value, bare(back)) if path[0] != "metadata"}
    assert added <= {("spec", "scaleTargetRef")}
    assert not added or "scaleTargetRef" not in value["spec"]


@law
def test_a_converted_object_has_only_fields_that_its_version_declares(seed: int, version: str) -> None:
    """The API server drops all others, so a field that is passed on to a version without it is lost."""
    other = OTHER[version]

    converted = {name: item for name, item in convert(valid(seed, version), other).items() if name in BODY}

    assert pruned(node_of(DECLARED[other]), converted) == converted


@law
def test_a_valid_object_converts_to_a_valid_object(seed: int, version: str) -> None:
    """This holds in both directions, and for what the annotation of conversion restores."""
    other = OTHER[version]
    served = find_version(other, "VariantAutoscaling")
    assert served

    assert validate(DECLARED[version], valid(seed, version)) == []
    assert validate(DECLARED[other], convert(valid(seed, version), other)) == []
    assert errors_of(*served, convert(valid(seed, version), other)) == []


def test_an_object_with_the_longest_valid_names_converts_to_a_valid_object() -> None:
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
def test_converting_twice_equals_converting_once(seed: int, version: str) -> None:
    """A conversion back and forth changes nothing either, not even the annotation."""
    other = OTHER[version]
    once = convert(valid(seed, version), other)

    assert convert(once, other) is once
    assert same(convert(convert(once, version), other), once)


@law
def test_metadata_is_unchanged_except_for_one_annotation(seed: int, version: str) -> None:
    """The API server takes labels and annotations from the conversion webhook, so none may be lost."""
    value = valid(seed, version)

    assert same(bare(convert(value, OTHER[version]))["metadata"], value["metadata"])


@law
def test_lists_and_common_members_keep_their_order(seed: int, version: str) -> None:
    """This includes conditions, candidates, and the members that both versions have."""
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
def test_an_edit_in_the_other_version_is_kept_and_changes_nothing_else(seed: int, version: str) -> None:
    """Only the edited leaf and the fields derived from it change."""
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
    """The annotation does not restore the deleted field."""
    value = valid(seed, version)
    other = convert(value, OTHER[version])
    paths = [path for path in members(other) if not any(isinstance(part, int) for part in path)]
    paths = [path for path in paths if path[:2] != ("spec", "scaleTargetRef")]
    path = Random(seed).choice(paths)

    back = convert(without(other, path), version)

    assert not any(found == path for found in members(back))


@law
def test_a_replacement_without_the_annotation_removes_every_field_that_it_omits(
    seed: int, version: str
) -> None:
    """The author of a manifest expects omitted fields to be absent in all versions."""
    replaced = bare(convert(valid(seed, version), OTHER[version]))

    stored = convert(replaced, version)

    assert same(bare(convert(stored, OTHER[version])), replaced)
    assert "decision" not in stored.get("status", {}) or "decision" in replaced.get("status", {})
    assert "modelProfile" not in stored["spec"] or "modelProfile" in replaced["spec"]


@pytest.mark.parametrize("version", [SPOKE, HUB])
@pytest.mark.parametrize("text", ["10.50", "10.5", "0010", "1.0e", "٣"])
def test_a_cost_keeps_its_digits(text: str, version: str) -> None:
    """A cost is a string: conversion does not parse it, so it does not round it."""
    spec = {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "variantCost": text}
    value = {"apiVersion": version, "kind": "VariantAutoscaling", "metadata": {"name": "a"}, "spec": spec}

    assert convert(value, OTHER[version])["spec"]["variantCost"] == text


@law
def test_no_malformed_object_fails_to_convert(seed: int, version: str) -> None:
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
def test_fields_that_both_versions_have_are_not_kept_in_the_annotation(more: Json, version: str) -> None:
    """So an edit or a deletion in one version is visible in the other."""
    target = {"kind": "Deployment", "name": "a"}
    spec = {"modelID": "m", "scaleTargetRef": target} | more
    value = {"apiVersion": version, "kind": "VariantAutoscaling", "metadata": {"name": "a"}, "spec": spec}

    assert convert(value, OTHER[version]) == value | {"apiVersion": OTHER[version]}
