"""Texts beyond their length limit: rejected for their length alone, without delay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pytest

from apiserver.kinds.core.affinity import PodAffinityTerm
from apiserver.kinds.core.env import EnvVar
from apiserver.kinds.core.nodeaffinity import NodeAffinity
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
"""Time enough to read the text a few times, and too little to read it once for each character."""

TEXTS: Final = {
    "open groups": "(" * CHARACTERS,
    "digits": "9" * CHARACTERS,
    "many parts of a duration": "1s" * (CHARACTERS // 2),
    "dots": "../" * (CHARACTERS // 3),
    "letters": "a" * CHARACTERS,
    "a long label key in a field path": f"metadata.labels['{'.' * CHARACTERS}']",
}


def ruled_texts(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Yield every text with rules below a node, with its path."""
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
def test_rules_ignore_texts_that_are_too_long(node: Node) -> None:
    """The schema rejects such texts, and a rule must not take long to recognize them."""
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
    "a value to compare a node's label with": (
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
def test_a_value_that_is_too_long_gets_one_error(declared: type, value: Json, want: list[str]) -> None:
    """Rules over several fields ignore it as well."""
    assert [str(error) for error in validate(declared, value)] == want


def test_a_required_label_value_of_a_node_has_the_length_limit_of_labels() -> None:
    """The field allows names of nodes, which may be longer."""
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a" * 64]}]}
    value = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    (error,) = validate(NodeAffinity, value)

    assert error.body.endswith("must be no more than 63 bytes")


def test_long_lists_of_keys_are_compared_quickly() -> None:
    """Two lists of 100,000 keys without a common one are compared in less than a second."""
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
def test_a_long_text_is_parsed_neither_as_a_duration_nor_as_a_quantity(text: str) -> None:
    """Both have at most 64 characters."""
    begun = time.process_time()

    assert nanoseconds(text) is None
    assert amount(text) is None
    assert time.process_time() - begun < MOST_SECONDS


def test_an_integer_may_have_any_number_of_digits() -> None:
    """It is no text; the schema rejects it for its width, before any rule."""
    [error] = validate(AutoscalingPolicyMetric, {"metricName": "m", "targetValue": 10**70})

    assert amount(10**70) == 10**70
    assert error.body.endswith("must be less than or equal to 9223372036854775807")


def test_the_length_of_a_header_name_is_limited() -> None:
    """The schema does not limit the keys of a map."""
    assert not validate(ModelMatch, {"headers": {"a" * 256: {}}})
    assert validate(ModelMatch, {"headers": {"a" * 257: {}}})
