"""Our judge against `jsonschema`, object by object, and what defaulting does to any object."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator

import msgspec
import pytest
from judges import ours
from judges.compare import Tally, compare_with_second, name_of
from judges.differences import DIFFERENCES
from judges.dispute import SECOND
from judges.generate import case
from judges.options import ENOUGH, judged_count, judged_numbers
from judges.texts import POOL_SIZE, matching

from apiserver.kinds.registry import KINDS
from apiserver.schema.defaulting import additions, complete, defaulted
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Version
from apiserver.schema.model import Node, node_of

VERSIONS = {name_of(kind, version): (kind, version) for kind in KINDS for version in kind.versions}
SOME = judged_count() * 2 // 5

every_version = pytest.mark.parametrize("name", VERSIONS)


@functools.cache
def tally_of(name: str) -> Tally:
    """Return how our judge and the second one agree on a version."""
    return compare_with_second(*VERSIONS[name], judged_numbers(name))


@every_version
def test_two_judges_agree_on_the_schema(name: str) -> None:
    """The same verdict and the same places, but for differences with a name."""
    tally = tally_of(name)

    assert not tally.unexplained, tally.report()


@pytest.mark.skipif(judged_count() < ENOUGH, reason="too few objects to meet every difference")
def test_every_named_difference_occurs() -> None:
    """One that no longer does has to go from the list."""
    hit = set().union(*(tally_of(name).explained for name in VERSIONS))

    assert hit == {item.name for item in DIFFERENCES if item.pair == SECOND}


@every_version
def test_what_is_made_to_be_valid_is(name: str) -> None:
    """And what is changed often is not: the generator knows its trade."""
    kind, version = VERSIONS[name]
    accepted: dict[str, list[bool]] = {"valid": [], "mutated": [], "wild": []}
    for number in range(SOME):
        item = case(kind, version, number)
        accepted[item.sort].append(not _is_refused(version, item.body))

    shares = {sort: sum(verdicts) / len(verdicts) for sort, verdicts in accepted.items()}
    assert shares["valid"] > 0.97
    assert 0.2 < shares["mutated"] < 0.8
    assert shares["wild"] < 0.4


@every_version
def test_a_number_always_makes_the_same_object(name: str) -> None:
    """So a disagreement can be looked at again."""
    kind, version = VERSIONS[name]

    assert [case(kind, version, number) for number in range(20)] == [
        case(kind, version, number) for number in range(20)
    ]


@every_version
def test_every_pattern_can_be_met(name: str) -> None:
    """The generator makes different texts for each pattern that a version declares."""
    _, version = VERSIONS[name]
    for node in _nodes(node_of(version.declaration)):
        if "pattern" in node.keywords:
            words = node.keywords
            texts = matching(words["pattern"], words.get("minLength", 0), words.get("maxLength", 64))
            assert 2 <= len(texts) <= POOL_SIZE, words["pattern"]


@pytest.mark.parametrize("pattern", ["(?i)a", "a**", "[^ -~]{200}", "a)"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    """Rather than met by texts that do not match it."""
    with pytest.raises(ValueError, match=r"cannot be read|was made|not known"):
        matching(pattern, 0, 64)


def test_repetition_and_classes_are_read() -> None:
    """A counted class, an escaped one, an alternative and an optional group."""
    assert matching(r"^a{3}\d$", 0, 9)[0].startswith("aaa")
    assert set(matching(r"^(x|y)[0-1]?\.$", 0, 9)) == {"x.", "y.", "x0.", "x1.", "y0.", "y1."}


@every_version
def test_defaulting_twice_changes_nothing(name: str) -> None:
    """Whatever the object: valid, changed or wild."""
    _, version = VERSIONS[name]
    for value in _objects(name):
        once = defaulted(version, value)
        assert additions(version, once).additions == []
        assert defaulted(version, once) == once


@every_version
def test_the_patch_makes_what_defaulting_makes(name: str) -> None:
    """Additions as RFC 6902 operations, applied one after the other to any object."""
    _, version = VERSIONS[name]
    for value in _objects(name):
        completion = additions(version, value)
        operations = msgspec.json.decode(msgspec.json.encode(completion.additions))
        want = copy.deepcopy(value)
        complete(version, want)
        assert _patched(value, operations) == want


def _objects(name: str) -> Iterator[Json]:
    kind, version = VERSIONS[name]
    return (ours.decoded(case(kind, version, number).body) for number in range(SOME))


def _is_refused(version: Version, body: bytes) -> bool:
    layers = ours.judged(version, ours.completed(version, ours.decoded(body)))
    return bool(layers.schema | layers.keys | layers.cel | layers.webhook)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for below in (*(prop.node for prop in node.properties), node.items, node.values):
        if below is not None:
            yield from _nodes(below)


def _patched(value: Json, operations: list[Json]) -> JsonValue:
    """Apply `add` operations as RFC 6902 says: the parent must be there."""
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
