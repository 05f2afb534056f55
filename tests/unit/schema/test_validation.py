"""Validation of raw objects: all errors, within limits, with their paths."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import pytest

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.kthena.models import MODEL
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import REQUIRED
from apiserver.schema.json import LEVELS, Json, without_depths
from apiserver.schema.markers import Format, Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.paths import FieldPath, camel_case
from apiserver.schema.rules import AtMostOneOf, Cel
from apiserver.schema.validation import validate


@declaration()
class Part:
    """An item of a list map."""

    name: Annotated[str, Length(1, 8)]
    """Key."""

    weight: Maybe[Annotated[int, Range(0, 100)]] = UNSET
    """Share."""


@declaration(AtMostOneOf(("alone", "left")), AtMostOneOf(("alone", "right")))
class Thing:
    """Something with one field of each sort."""

    name: Maybe[Annotated[str, Pattern(r"^[a-z]+$", says="lower-case letters")]] = UNSET
    """Name."""

    role: Literal["Serve", "Prefill"] = "Serve"
    """What it does."""

    alone: Maybe[bool] = UNSET
    """Excludes the others."""

    left: Maybe[int] = UNSET
    """One half."""

    right: Maybe[int] = UNSET
    """The other half."""

    ratio: Maybe[float] = UNSET
    """Any number."""

    since: Maybe[Annotated[str, Format("date-time")]] = UNSET
    """When."""

    labels: Maybe[Annotated[dict[str, Annotated[str, Length(maximum=3)]], Properties(1, 2)]] = UNSET
    """Texts."""

    parts: Maybe[Annotated[tuple[Part, ...], Items(1, 2), MapKeys("name")]] = UNSET
    """Items."""


NAMED = Cel(
    "has(self.name) && size(self.name) > 0",
    lambda value: bool(value.get("name")),
    "must be set and not empty",
    sentence="`name` is set and not empty.",
    field="name",
    reason=REQUIRED,
)


@declaration(NAMED)
class Named:
    """An object with a rule on its name."""

    name: Maybe[str] = UNSET
    """Name."""


@declaration()
class Group:
    """A list without a maximum."""

    named: Maybe[tuple[Named, ...]] = UNSET
    """Items."""


CASES = {
    "a valid object has no error": ({"name": "a", "parts": [{"name": "x", "weight": 100}]}, []),
    "a null member counts as absent": ({"name": "a", "role": None}, []),
    "a null item is an error": (
        {"name": "a", "parts": [None]},
        ["parts[0]: Invalid value: null: must be an object"],
    ),
    "a wrong type is explained in words": (
        {"name": 7, "left": "x", "right": 1.5, "alone": 1},
        [
            "name: Invalid value: 7: must be a string",
            "alone: Invalid value: 1: must be true or false",
            'left: Invalid value: "x": must be an integer',
            "left: Forbidden: may not be set together with `alone`",
            "right: Invalid value: 1.5: must be an integer",
            "right: Forbidden: may not be set together with `alone`",
        ],
    ),
    "an integer beyond 64 bits is an error": (
        {"name": "a", "left": 1, "right": 2**63, "ratio": 0.5},
        ["right: Invalid value: 9223372036854775808: must be less than or equal to 9223372036854775807"],
    ),
    "a pattern is explained in words, and a final newline does not match": (
        {"name": "a\n"},
        ['name: Invalid value: "a\\n": must be lower-case letters'],
    ),
    "an enum error lists the supported values": (
        {"name": "a", "role": "serve"},
        ['role: Unsupported value: "serve": supported values: "Serve", "Prefill"'],
    ),
    "a date-time must be valid": (
        {"name": "a", "since": "yesterday"},
        ['since: Invalid value: "yesterday": must be a valid date-time'],
    ),
    "maps and lists have bounds": (
        {"name": "a", "labels": {"k": "long", "l": "", "m": ""}, "parts": []},
        [
            "labels: Too many: 3: must have at most 2 items",
            "labels[k]: Too long: may not be more than 3 bytes",
            "parts: Invalid value: []: must have at least 1 item",
        ],
    ),
    "items of a list map have unique keys": (
        {"name": "a", "parts": [{"name": "x"}, {"name": "x", "weight": 101}]},
        [
            'parts[1]: Duplicate value: {"name":"x"}',
            "parts[1].weight: Invalid value: 101: must be less than or equal to 100",
        ],
    ),
}


@pytest.mark.parametrize(("value", "want"), CASES.values(), ids=CASES.keys())
def test_every_error_is_listed(value: Json, want: list[str]) -> None:
    """The errors are in the order of the fields."""
    assert [str(error) for error in validate(Thing, value)] == want


def test_a_rule_has_no_error_for_a_value_of_a_wrong_type() -> None:
    """The type is the only error, although an empty text replaces the value for rules."""
    found = validate(Named, {"name": 7})

    assert [str(error) for error in found] == ["name: Invalid value: 7: must be a string"]


@pytest.mark.parametrize(("count", "more"), [(100, []), (101, ["FieldValueTooMany"])])
def test_beyond_a_hundred_errors_of_rules_one_tells_that_there_are_more(count: int, more: list[str]) -> None:
    """A hundred are listed without it."""
    found = validate(Group, {"named": [{}] * count})

    assert [error.reason for error in found] == ["FieldValueRequired"] * 100 + more


def test_a_long_value_is_truncated_in_the_message() -> None:
    """A megabyte of text makes a short error."""
    (error,) = validate(Thing, {"name": "A" * 1_000_000})

    assert len(str(error)) < 400
    assert "1000002 characters" in str(error)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("model_id", "modelID", id="id at the end is upper-cased"),
        pytest.param("id_suffix", "idSuffix", id="id at the start is lower-cased"),
        pytest.param("scale_target_ref", "scaleTargetRef", id="words begin upper-case"),
        pytest.param("global_", "global", id="a keyword loses its underscore"),
        pytest.param("model_uri", "modelURI", id="uri is upper-cased"),
    ],
)
def test_json_names_are_in_camel_case(name: str, want: str) -> None:
    """The names of all fields follow this rule."""
    assert camel_case(name) == want


def test_a_path_prints_as_kubernetes_prints_it() -> None:
    """Members follow dots; items and keys are in brackets."""
    path = FieldPath().child("spec", "rules").index(2).child("labels").key("app")

    assert str(path) == "spec.rules[2].labels[app]"


CUT = {
    "shallow text is unchanged": (b'{"a": ["]]]]", {"b": 1}]}', b'{"a": ["]]]]", {"b": 1}]}'),
    "a value nested too deeply becomes null": (
        b"[" * LEVELS + b"[[1], 2], 3" + b"]" * LEVELS,
        b"[" * LEVELS + b"null, 3" + b"]" * LEVELS,
    ),
    "each of several deep values becomes null": (
        b"[" * LEVELS + b'{"}": "]"}, {}, 4' + b"]" * LEVELS,
        b"[" * LEVELS + b"null, null, 4" + b"]" * LEVELS,
    ),
    "text with more levels than API servers accept is truncated": (
        b"[" * 20_000 + b"]" * 20_000,
        b"[" * LEVELS,
    ),
    "truncated text remains truncated": (b"[" * (LEVELS + 9), b"[" * LEVELS + b"null"),
    "an escaped quote does not end a string": (rb'["\"[", "\\", []]', rb'["\"[", "\\", []]'),
    "a string without an end is unchanged": (rb'[[], "\"[]', rb'[[], "\"[]'),
    "a backslash at the end is unchanged": (b'["[\\', b'["[\\'),
}


@pytest.mark.parametrize(("text", "want"), CUT.values(), ids=CUT.keys())
def test_text_is_truncated_at_a_nesting_depth(text: bytes, want: bytes) -> None:
    """Everything above that depth is unchanged."""
    assert without_depths(text) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * LEVELS + b'"' + b'\\"' * 500_000, id="a string without an end"),
        pytest.param(b"[" * LEVELS + b" " * 1_000_000, id="much behind the last bracket"),
        pytest.param(b"[" * 1_000_000, id="brackets without an end"),
    ],
)
def test_invalid_text_takes_linear_time(text: bytes) -> None:
    """Any client that reaches the port can send it. In quadratic time, it would take an hour."""
    began = time.process_time()

    without_depths(text)

    assert time.process_time() - began < 10.0


HUGE = 200_000


def backend(**members: object) -> Json:
    """Return a backend of a fixed number of replicas with some members changed."""
    whole = {
        "name": "h100",
        "type": "vLLM",
        "modelURI": "hf://meta/llama",
        "minReplicas": 1,
        "maxReplicas": 1,
        "workers": [{}],
    }
    return whole | members


OVERSIZED = {
    "a text": (
        [backend(modelURI="hf://" + "x" * HUGE, routeWeight=-1)],
        [
            "spec.backends[0].modelURI: Too long: may not be more than 2048 bytes",
            "spec.backends[0].routeWeight: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    "a length of time": (
        [backend(scaleToZeroGracePeriod="9" * HUGE + "h")],
        ["spec.backends[0].scaleToZeroGracePeriod: Too long: may not be more than 64 bytes"],
    ),
    "a map": (
        [backend(workers=[{"resources": {"limits": {f"r{i}": 1 for i in range(HUGE)}}}])],
        ["spec.backends[0].workers[0].resources.limits: Too many: 200000: must have at most 64 items"],
    ),
}


@pytest.mark.parametrize(("backends", "want"), OVERSIZED.values(), ids=OVERSIZED.keys())
def test_an_oversized_value_gets_one_short_error(backends: list[Json], want: list[str]) -> None:
    """Errors of other fields are listed as well."""
    found = errors_of(backends)

    assert [error for error in found if "[r" not in error] == want
    assert all(len(error) < 400 for error in found)


def test_a_list_beyond_its_maximum_gets_a_limited_number_of_errors() -> None:
    """For 60,000 invalid items, no more errors are listed than for any object."""
    found = errors_of([{"name": f"b{position}"} for position in range(60_000)])

    assert found[0] == "spec.backends: Too many: 60000: must have at most 32 items"
    assert len(found) == 101


def errors_of(backends: list[Json]) -> list[str]:
    """Return the errors of a Model with these backends."""
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "llama"},
        "spec": {"backends": backends},
    }
    return [str(error) for error in complete_and_judge(MODEL, MODEL.versions[0], value).errors]
