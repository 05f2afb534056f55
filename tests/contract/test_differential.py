"""The validator compared with `jsonschema` for generated objects, and properties of defaulting."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator

import msgspec
import pytest
from differential import ours
from differential.compare import Tally, compare_with_second, name_of
from differential.differences import DIFFERENCES
from differential.dispute import SECOND
from differential.generate import Case, case, cases
from differential.options import ENOUGH, judged_count, judged_numbers
from differential.texts import POOL_SIZE, matching

from apiserver.kinds.registry import KINDS
from apiserver.schema.defaulting import complete, with_defaults
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Version
from apiserver.schema.model import SchemaNode, node_of

VERSIONS = {name_of(kind, version): (kind, version) for kind in KINDS for version in kind.versions}
SOME = judged_count() * 2 // 5

every_version = pytest.mark.parametrize("name", VERSIONS)


@functools.cache
def tally_of(name: str) -> Tally:
    """Return how the validator and `jsonschema` agree on a version."""
    return compare_with_second(*VERSIONS[name], judged_numbers(name))


@functools.cache
def some_cases(name: str) -> tuple[Case, ...]:
    """Return generated objects of a version, which several tests use."""
    return tuple(cases(*VERSIONS[name], range(SOME)))


@every_version
def test_both_validators_agree_on_the_schema(name: str) -> None:
    """Verdicts and paths are equal, except for named differences."""
    tally = tally_of(name)

    assert not tally.unexplained, tally.report()


@pytest.mark.skipif(judged_count() < ENOUGH, reason="too few objects to meet every difference")
def test_every_named_difference_occurs() -> None:
    """A difference that no longer occurs must be removed from the list."""
    hit = set().union(*(tally_of(name).explained for name in VERSIONS))

    assert hit == {item.name for item in DIFFERENCES if item.pair == SECOND}


@every_version
def test_most_objects_that_are_generated_as_valid_are_accepted(name: str) -> None:
    """More than 97 % of them are; of mutated objects 20 % to 80 %, of random ones less than 40 %."""
    _, version = VERSIONS[name]
    accepted: dict[str, list[bool]] = {"valid": [], "mutated": [], "wild": []}
    refused = []
    for item in some_cases(name):
        accepted[item.sort].append(not _is_refused(version, item.body))
        if item.sort == "valid" and not accepted["valid"][-1]:
            refused.append(item.body.decode())

    shares = {sort: sum(verdicts) / len(verdicts) for sort, verdicts in accepted.items()}
    assert shares["valid"] > 0.97, f"they are made without defaults, and refused with them: {refused[:2]}"
    assert 0.2 < shares["mutated"] < 0.8
    assert shares["wild"] < 0.4


@every_version
def test_a_number_always_generates_the_same_object(name: str) -> None:
    """A disagreement can therefore be reproduced."""
    kind, version = VERSIONS[name]

    assert [case(kind, version, number) for number in range(20)] == [
        case(kind, version, number) for number in range(20)
    ]


@every_version
def test_the_generator_finds_strings_for_every_pattern(name: str) -> None:
    """There are at least two different strings for each pattern in a version's declaration."""
    _, version = VERSIONS[name]
    for node in _nodes(node_of(version.declaration)):
        if "pattern" in node.keywords:
            words = node.keywords
            texts = matching(words["pattern"], words.get("minLength", 0), words.get("maxLength", 64))
            assert 2 <= len(texts) <= POOL_SIZE, words["pattern"]


@pytest.mark.parametrize("pattern", ["(?i)a", "a**", "[^ -~]{200}", "a)"])
def test_an_unsupported_pattern_is_an_error(pattern: str) -> None:
    """The generator does not return strings that do not match."""
    with pytest.raises(ValueError, match=r"cannot be read|was made|not known"):
        matching(pattern, 0, 64)


def test_repetitions_classes_alternatives_and_optional_groups_are_supported() -> None:
    """A class can be counted or escaped."""
    assert matching(r"^a{3}\d$", 0, 9)[0].startswith("aaa")
    assert set(matching(r"^(x|y)[0-1]?\.$", 0, 9)) == {"x.", "y.", "x0.", "x1.", "y0.", "y1."}


@every_version
def test_defaulting_twice_changes_nothing(name: str) -> None:
    """This holds for valid, mutated and random objects."""
    _, version = VERSIONS[name]
    for value in _objects(name):
        once = with_defaults(version, value)
        assert complete(version, once).additions == []
        assert with_defaults(version, once) == once


@every_version
def test_the_patch_has_the_same_result_as_defaulting(name: str) -> None:
    """The additions are applied one by one as RFC 6902 operations, to any object."""
    _, version = VERSIONS[name]
    for value in _objects(name):
        completion = complete(version, copy.deepcopy(value))
        operations = msgspec.json.decode(msgspec.json.encode(completion.additions))
        want = copy.deepcopy(value)
        complete(version, want)
        assert _patched(value, operations) == want


def _objects(name: str) -> Iterator[Json]:
    return (ours.decoded(item.body) for item in some_cases(name))


def _is_refused(version: Version, body: bytes) -> bool:
    layers = ours.judged(version, ours.completed(version, ours.decoded(body)))
    return bool(layers.schema | layers.keys | layers.cel | layers.webhook)


def _nodes(node: SchemaNode) -> Iterator[SchemaNode]:
    yield node
    for below in (*(prop.node for prop in node.properties), node.items, node.values):
        if below is not None:
            yield from _nodes(below)


def _patched(value: Json, operations: list[Json]) -> JsonValue:
    """Apply `add` operations as RFC 6902 specifies; a parent must exist."""
    result: JsonValue = copy.deepcopy(value)
    for operation in operations:
        assert operation["op"] == "add"
        *parents, last = (
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        )
        target = result
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        assert isinstance(target, dict)
        target[last] = copy.deepcopy(operation["value"])
    return result
