"""Conversion of the usual shapes: it is used for them, and its result is that of the full conversion."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

import msgspec
import pytest
from support.laws import OTHER, law
from support.variants import forged, odd, valid

from apiserver.kinds.llmd import usual, v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.llmd.usual import converted
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import node_of
from apiserver.schema.undecoded import same
from hack.calling import variants

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "name": 'the "decode"',
    "uid": "u",
    "controller": True,
}
OTHERS = {"a": "1", "kubectl.kubernetes.io/last-applied-configuration": '{"kind":"VariantAutoscaling"}\n'}

EDITS: tuple[JsonValue, ...] = (msgspec.UNSET, None, 1, 2.0, "H100", [], {}, {"name": "x"})


def usually(value: Json, version: str) -> Json | None:
    """Return an object as the conversion of the usual shapes converts it; None if it declines."""
    text = converted([msgspec.Raw(msgspec.json.encode(value))], version)
    return None if text is None else msgspec.json.decode(text)


def agreed(value: Json, version: str) -> Json | None:
    """Return the same, after a comparison with the full conversion."""
    before = copy.deepcopy(value)
    found = usually(value, version)
    assert found is None or same(found, convert(before, version))
    return found


@pytest.mark.parametrize("metadata", [{}, {"annotations": OTHERS}, {"ownerReferences": [OWNER]}])
@pytest.mark.parametrize("make", variants.SHAPES.values(), ids=variants.SHAPES.keys())
def test_every_released_shape_is_usual_in_both_directions(make: variants.Make, metadata: Json) -> None:
    """An object is usual with other annotations and an owner, too, and returns unchanged."""
    value = make(3)
    value["metadata"] |= metadata

    there = agreed(value, OTHER[value["apiVersion"]])

    assert there is not None
    assert same(agreed(there, value["apiVersion"]), value)


def test_an_identifier_that_a_user_chose_is_usual() -> None:
    """It returns unchanged, too."""
    value = variants.legacy(3)
    value["spec"]["variantID"] = "own-B200-2"

    there = agreed(value, HUB)

    assert there is not None
    assert same(agreed(there, SPOKE), value)


@pytest.mark.parametrize("make", [variants.legacy, variants.profiled])
def test_an_older_shape_with_a_decision_is_usual(make: variants.Make) -> None:
    """So it is stored after an upgrade, once there is a decision about it."""
    stored = convert(make(3), HUB)
    stored["status"] = variants.decided(3)["status"]

    there = agreed(stored, SPOKE)

    assert there is not None
    assert same(agreed(there, HUB), stored)


@pytest.mark.parametrize("make", variants.SHAPES.values(), ids=variants.SHAPES.keys())
def test_every_edit_of_one_member_has_the_same_result(make: variants.Make) -> None:
    """Whether or not the object is still usual then, and in both versions."""
    value = make(3)
    there = convert(value, OTHER[value["apiVersion"]])
    for stored in (value, there):
        other = OTHER[stored["apiVersion"]]
        for path in list(members(stored)):
            for item in EDITS:
                agreed(edited(stored, path, item), other)


def members(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all members of objects, except for those that identify an object."""
    for name, item in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if name not in {"apiVersion", "kind", "metadata", "managedFields"} and isinstance(value, dict):
            yield (*path, name)
        if name != "managedFields":
            yield from members(item, (*path, name))


def edited(value: Json, path: tuple[str | int, ...], item: JsonValue) -> Json:
    """Return an object with one member replaced, or removed for `UNSET`."""
    value = copy.deepcopy(value)
    holder: JsonValue = value
    for part in path[:-1]:
        holder = holder[part]
    if item is msgspec.UNSET:
        del holder[path[-1]]
    else:
        holder[path[-1]] = item
    return value


@pytest.mark.parametrize("inner", ["[" * 100_000 + "]" * 100_000, "1e999", '1},{"path":["spec"],"value":2'])
@pytest.mark.parametrize("make", variants.SHAPES.values(), ids=variants.SHAPES.keys())
def test_a_forged_value_in_a_usual_annotation_has_the_same_result(make: variants.Make, inner: str) -> None:
    """A value that cannot be decoded may not make the object's list fail."""
    value = make(3)
    there = convert(value, OTHER[value["apiVersion"]])
    annotations = there["metadata"].setdefault("annotations", {})
    decision = f'{{"fields":[{{"path":["status","decision"],"value":{inner}}}]}}'
    kept = annotations.get(ANNOTATION, decision)
    source, count = re.subn(r'"alpha":"[^"]*"', lambda _: f'"alpha":{inner}', kept, count=1)

    annotations[ANNOTATION] = source if count else decision

    agreed(there, value["apiVersion"])


@pytest.mark.parametrize("field", ["acc", "accCount", "perfParms", "maxBatchSize"])
def test_a_candidate_without_a_field_has_the_same_result(field: str) -> None:
    """Only parameters may be missing; then there are none in the hub version either."""
    value = variants.profiled(3)
    del value["spec"]["modelProfile"]["accelerators"][1][field]

    agreed(value, HUB)
    agreed(convert(value, HUB), SPOKE)


@law
def test_what_it_accepts_has_the_same_result_as_the_full_conversion(seed: int, version: str) -> None:
    """This includes malformed objects and forged annotations."""
    for value in (valid(seed, version), odd(seed, version)):
        there = convert(value, OTHER[version])
        agreed(value, OTHER[version])
        agreed(there, version)
    value = valid(seed, version)
    text = msgspec.json.encode(forged(seed, value)).decode()
    value["metadata"].setdefault("annotations", {})[ANNOTATION] = text
    agreed(value, OTHER[version])


def test_all_fields_of_both_versions_are_known_to_it() -> None:
    """An object with an unknown field takes several times as long."""
    for member, struct in (("spec", usual.Spec), ("status", usual.Status)):
        known = {field.encode_name for field in msgspec.structs.fields(struct)}
        for version in (v1alpha1, v1alpha2):
            declared = node_of(version.VariantAutoscaling).property(member)
            assert declared is not None
            assert set(declared.node.by_name) <= known
