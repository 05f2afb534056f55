"""Rules of core types with selectors, label keys and affinity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.core.affinity import Affinity, PodAffinityTerm
from apiserver.kinds.core.names import LabelSelector, label_key_errors, label_value_errors
from apiserver.kinds.kthena.modelserver import PDGroup
from apiserver.kinds.meta import LocalObjectReference, ObjectReference
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

NODES = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PODS = "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character"
)
VALUE = f"a valid label must be an empty string or {CHARACTERS.removeprefix('must ')}"
LABEL_KEY = "must be a label key such as app or example.com/team"


def nodes(*expressions: Json, **term: Any) -> Json:
    """Return an affinity that requires nodes."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions), **term}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def preferred(*expressions: Json, weight: int = 1) -> Json:
    """Return an affinity that prefers nodes."""
    term = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def pods(**term: Any) -> Json:
    """Return an affinity that requires pods nearby."""
    return {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"} | term]}
    }


ACCEPTED: dict[str, tuple[type, Json]] = {
    "no affinity": (Affinity, {}),
    "nodes by label": (Affinity, nodes({"key": "gpu", "operator": "In", "values": ["H100", ""]})),
    "nodes by a numeric label": (Affinity, nodes({"key": "memory", "operator": "Gt", "values": ["40"]})),
    "one node by its name": (
        Affinity,
        nodes(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]),
    ),
    "an invalid label value in a preference": (
        Affinity,
        preferred({"key": "gpu", "operator": "NotIn", "values": ["a b"]}, weight=100),
    ),
    "pods by labels": (
        Affinity,
        pods(
            labelSelector={"matchLabels": {"app": "a"}},
            namespaceSelector={},
            matchLabelKeys=["pod-template-hash"],
            mismatchLabelKeys=["tenant"],
        ),
    ),
    "an empty object reference": (ObjectReference, {}),
    "an empty selector": (LabelSelector, {}),
}

REFUSED: dict[str, tuple[type, Json, list[str]]] = {
    "no terms": (
        Affinity,
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        [f"{NODES.removesuffix('[0]')}: Invalid value: []: must have at least 1 item"],
    ),
    "In without values": (
        Affinity,
        nodes({"key": "gpu", "operator": "In"}),
        [
            f"{NODES}.matchExpressions[0].values: Required value: must be set when `operator` is 'In' or"
            " 'NotIn'"
        ],
    ),
    "Exists with values": (
        Affinity,
        nodes({"key": "gpu", "operator": "Exists", "values": ["a"]}),
        [
            f"{NODES}.matchExpressions[0].values: Forbidden: may not be set when `operator` is 'Exists' or"
            " 'DoesNotExist'"
        ],
    ),
    "Gt with two values": (
        Affinity,
        nodes({"key": "memory", "operator": "Gt", "values": ["1", "2"]}),
        [
            f"{NODES}.matchExpressions[0].values: Required value: must be a single value when `operator` is"
            " 'Gt' or 'Lt'"
        ],
    ),
    "Lt with a value that is no integer": (
        Affinity,
        preferred({"key": "memory", "operator": "Lt", "values": ["40Gi"]}),
        [
            "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]"
            ".values[0]: Invalid value: \"40Gi\": must be an integer when `operator` is 'Gt' or 'Lt'"
        ],
    ),
    "an invalid label value in a requirement": (
        Affinity,
        nodes({"key": "gpu", "operator": "In", "values": ["H100", "a b"]}),
        [f'{NODES}.matchExpressions[0].values[1]: Invalid value: "a b": {VALUE}'],
    ),
    "an unsupported field, operator and number of values": (
        Affinity,
        nodes(matchFields=[{"key": "metadata.uid", "operator": "Exists", "values": ["a", "b"]}]),
        [
            f'{NODES}.matchFields[0].key: Unsupported value: "metadata.uid": supported values:'
            ' "metadata.name"',
            f'{NODES}.matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
            f"{NODES}.matchFields[0].values: Too many: 2: must have at most 1 item",
        ],
    ),
    "a weight above 100": (
        Affinity,
        preferred(weight=101),
        [
            "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must"
            " be less than or equal to 100"
        ],
    ),
    "an empty topology key": (
        Affinity,
        pods(topologyKey=""),
        [f'{PODS}.topologyKey: Invalid value: "": {LABEL_KEY}'],
    ),
    "label keys without a selector": (
        Affinity,
        pods(matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
        [
            f"{PODS}.matchLabelKeys: Forbidden: may not be set when `labelSelector` is not set",
            f"{PODS}.mismatchLabelKeys: Forbidden: may not be set when `labelSelector` is not set",
        ],
    ),
    "one label key in three places": (
        Affinity,
        pods(
            labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            matchLabelKeys=["a"],
            mismatchLabelKeys=["a"],
        ),
        [
            f'{PODS}.matchLabelKeys[0]: Invalid value: "a": exists in both `matchLabelKeys` and'
            " `labelSelector`",
            f'{PODS}.matchLabelKeys[0]: Invalid value: "a": exists in both `matchLabelKeys` and'
            " `mismatchLabelKeys`",
        ],
    ),
    "an invalid namespace": (
        Affinity,
        pods(namespaces=["A"]),
        [
            f'{PODS}.namespaces[0]: Invalid value: "A": must be lower-case letters, digits and dashes, such'
            " as my-name"
        ],
    ),
    "invalid labels": (
        LabelSelector,
        {"matchLabels": {"/a": "", "b": "x y", "c": "v" * 64}},
        [
            'matchLabels: Invalid value: "/a": prefix part must be non-empty',
            f'matchLabels[b]: Invalid value: "x y": {VALUE}',
            "matchLabels[c]: Too long: may not be more than 63 bytes",
        ],
    ),
    "expressions with invalid labels": (
        LabelSelector,
        {"matchExpressions": [{"key": "a/b/c", "operator": "NotIn", "values": ["-"]}]},
        [
            f'matchExpressions[0].key: Invalid value: "a/b/c": {LABEL_KEY}',
            f'matchExpressions[0].values[0]: Invalid value: "-": {VALUE}',
        ],
    ),
    "a local reference without a name": (LocalObjectReference, {}, ["name: Required value"]),
}

KEYS = {
    "a": [],
    "Example_1.x/y": ["prefix part must be a lowercase RFC 1123 subdomain such as example.com"],
    "example.com/team": [],
    "": ["name part must be non-empty"],
    "example.com/": ["name part must be non-empty"],
    "/": ["prefix part must be non-empty", "name part must be non-empty"],
    "a/b/c": [f"a valid label key {CHARACTERS} with an optional DNS subdomain prefix and '/'"],
    "-a": [f"name part {CHARACTERS}"],
    "a" * 64: ["name part must be no more than 63 characters"],
    "a" * 254 + "/b": ["prefix part must be no more than 253 characters"],
}


@pytest.mark.parametrize(("declared", "value"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_affinity_selector_or_reference_is_accepted(declared: type, value: Json) -> None:
    """There are no errors."""
    assert [str(error) for error in validate(declared, value)] == []


@pytest.mark.parametrize(("declared", "value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(declared: type, value: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(declared, value)] == want


@pytest.mark.parametrize(("key", "want"), KEYS.items())
def test_a_label_key_is_a_name_with_an_optional_domain_as_prefix(key: str, want: list[str]) -> None:
    """Every violated rule has a message."""
    assert list(label_key_errors(key)) == want


@given(st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z"))
def test_every_valid_name_is_a_valid_label_key_and_label_value(text: str) -> None:
    """Both allow the same characters."""
    assert not [*label_key_errors(text), *label_value_errors(text)]


@given(st.text(max_size=5))
def test_a_text_without_a_prefix_that_is_no_label_value_is_no_label_key_either(text: str) -> None:
    """Unlike values, keys may have a prefix and must not be empty."""
    if "/" not in text and list(label_value_errors(text)):
        assert list(label_key_errors(text))


LONGEST_DOMAIN = ".".join(["a" * 63] * 3 + ["a" * 61])
TOO_LONG = "prefix part must be no more than 253 characters"


def group(key: str) -> Json:
    """Return a group with this key."""
    return {"groupKey": key, "prefillLabels": {"role": "prefill"}, "decodeLabels": {"role": "decode"}}


def test_the_domain_has_its_own_length_limit() -> None:
    """A short name does not allow a longer domain."""
    assert not validate(PDGroup, group(f"{LONGEST_DOMAIN}/group"))

    (error,) = validate(PDGroup, group(f"{LONGEST_DOMAIN}a/group"))

    assert str(error).startswith("groupKey: Invalid value: ")
    assert str(error).endswith(TOO_LONG)


@pytest.mark.parametrize("field", ["matchLabelKeys", "mismatchLabelKeys"])
def test_the_length_of_a_key_in_a_list_is_limited_as_well(field: str) -> None:
    """The error names the item."""
    term = {"labelSelector": {}, "topologyKey": "zone", field: [f"{LONGEST_DOMAIN}a/group"]}

    (error,) = validate(PodAffinityTerm, term)

    assert str(error).startswith(f"{field}[0]: ")
    assert error.body.endswith(TOO_LONG)


def test_a_key_beyond_the_total_limit_gets_no_error_about_its_domain() -> None:
    """It is reported as too long; only the pattern that it violates may be reported as well."""
    errors = validate(PDGroup, group(f"{'a' * 400}/{'b' * 10}"))

    assert [error.body for error in errors if TOO_LONG in error.body] == []
    assert any(error.reason == "FieldValueTooLong" for error in errors)
