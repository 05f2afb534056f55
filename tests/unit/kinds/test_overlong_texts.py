"""A text beyond its bound is refused for its length alone, in no time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pytest

from apiserver.kinds.core.env import EnvVar
from apiserver.kinds.core.nodeaffinity import NodeAffinity
from apiserver.kinds.core.podaffinity import PodAffinityTerm
from apiserver.kinds.core.resources import ResourceRequirements
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicyMetric
from apiserver.kinds.kthena.modelmatch import ModelMatch
from apiserver.kinds.llmd.v1alpha2 import PerfParms
from apiserver.kinds.registry import KINDS
from apiserver.schema.durations import nanoseconds
from apiserver.schema.json import Json
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.quantities import amount
from apiserver.schema.validation import validate

CHARACTERS: Final = 1_000_000
MOST_SECONDS: Final = 0.1
"""Time enough to read the text a few times, and too little to do it once for each character of it."""

TEXTS: Final = {
    "open groups": "(" * CHARACTERS,
    "digits": "9" * CHARACTERS,
    "many parts of a duration": "1s" * (CHARACTERS // 2),
    "dots": "../" * (CHARACTERS // 3),
    "letters": "a" * CHARACTERS,
    "a label that is asked for": f"metadata.labels['{'.' * CHARACTERS}']",
}


def ruled_texts(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Yield every bounded text with rules below a node, and where it is."""
    if node.type in ("string", "int-or-string") and node.rules:
        yield path, node
    for prop in node.properties:
        yield from ruled_texts(prop.node, f"{path}.{prop.name}")
    for inner in (node.items, node.values):
        if inner is not None:
            yield from ruled_texts(inner, f"{path}[]")


RULED: Final = {
    (place.rpartition(".")[2], text.rules): pytest.param(text, id=place)
    for kind in KINDS
    for version in kind.versions
    for place, text in ruled_texts(node_of(version.declaration), kind.kind)
}


@pytest.mark.parametrize("node", RULED.values())
def test_rules_leave_the_length_to_the_schema(node: Node) -> None:
    """None judges a text that the schema refuses anyway, and none takes long to see that."""
    assert "maxLength" in node.keywords
    for text in TEXTS.values():
        begun = time.process_time()
        found = [error for rule in node.rules for error in rule.check(text, FieldPath())]

        assert time.process_time() - begun < MOST_SECONDS
        assert not found


LONG: Final[dict[str, tuple[type, Json, list[str]]]] = {
    "a divisor": (
        EnvVar,
        {
            "name": "A",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "9" * CHARACTERS}},
        },
        ["valueFrom.resourceFieldRef.divisor: Too long: may not be more than 64 bytes"],
    ),
    "an amount": (
        ResourceRequirements,
        {"limits": {"cpu": "9" * CHARACTERS}},
        ["limits[cpu]: Too long: may not be more than 64 bytes"],
    ),
    "what a node's label is compared with": (
        NodeAffinity,
        {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["9" * CHARACTERS]}]}
                ]
            }
        },
        [
            "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
            ".values[0]: Too long: may not be more than 317 bytes"
        ],
    ),
    "a parameter": (
        PerfParms,
        {"decodeParms": {"alpha": "." * CHARACTERS}, "prefillParms": {"gamma": "1"}},
        ["decodeParms[alpha]: Too long: may not be more than 64 bytes"],
    ),
}


@pytest.mark.parametrize(("declared", "value", "want"), LONG.values(), ids=LONG.keys())
def test_a_value_that_is_too_long_is_that_and_nothing_more(
    declared: type, value: Json, want: list[str]
) -> None:
    """Rules over several fields hold back too."""
    assert [str(error) for error in validate(declared, value)] == want


def test_a_label_that_nodes_must_have_is_bounded_as_one() -> None:
    """A text may be as long as a name of a node, but no label's value is."""
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a" * 64]}]}
    value = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    (error,) = validate(NodeAffinity, value)

    assert error.body.endswith("must be no more than 63 bytes")


def test_many_keys_are_looked_up_and_not_searched_for() -> None:
    """Two lists of a hundred thousand keys, which have none in common, are compared at once."""
    keys = {
        "labelSelector": {},
        "matchLabelKeys": [f"a{position}" for position in range(100_000)],
        "mismatchLabelKeys": [f"b{position}" for position in range(100_000)],
    }
    (rule,) = node_of(PodAffinityTerm).rules
    begun = time.process_time()

    assert not list(rule.check(keys, FieldPath()))
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_nothing_long_is_read_as_a_number(text: str) -> None:
    """Neither as a length of time nor as an amount; both have 64 characters at most."""
    begun = time.process_time()

    assert nanoseconds(text) is None
    assert amount(text) is None
    assert time.process_time() - begun < MOST_SECONDS


def test_a_number_may_have_any_number_of_digits() -> None:
    """It is no text; the schema refuses it for its width, and no rule sees it."""
    [error] = validate(AutoscalingPolicyMetric, {"metricName": "m", "targetValue": 10**70})

    assert amount(10**70) == 10**70
    assert error.body.endswith("must be less than or equal to 9223372036854775807")


def test_a_name_of_a_header_is_bounded() -> None:
    """The schema bounds no key of a map."""
    assert not validate(ModelMatch, {"headers": {"a" * 256: {}}})
    assert validate(ModelMatch, {"headers": {"a" * 257: {}}})
