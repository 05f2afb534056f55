"""Validation, references, defaults and warnings of a ModelRoute."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.kthena.modelmatch import compile_fault
from apiserver.kinds.kthena.modelroute import ModelRoute
from apiserver.kinds.kthena.routing import MODEL_ROUTE, matches_everything, route_advice
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

VERSION = MODEL_ROUTE.storage_version
TARGET = {"modelServerName": "llama-8b"}
IMMUTABLE = "field is immutable: to change it, delete the object and create it anew"
NO_NAME = (
    "spec.modelName: Required value: at least one of `modelName` and `loraAdapters` must be set and not empty"
)


def route(**spec: Any) -> Json:
    """Return a route spec with a name and one rule unless others are given."""
    return {"modelName": "llama-8b", "rules": [{"targetModels": [TARGET]}], **spec}


def weights(*numbers: int) -> Json:
    """Return a route spec whose one rule has targets of these weights."""
    targets = [{"modelServerName": f"s{rank}", "weight": number} for rank, number in enumerate(numbers)]
    return route(rules=[{"targetModels": targets}])


def match(**conditions: Any) -> Json:
    """Return a route spec whose one rule has these conditions."""
    return route(rules=[{"modelMatch": conditions, "targetModels": [TARGET]}])


def redis(address: str) -> Json:
    """Return a route spec with a rate limit that is counted in Redis at an address."""
    return route(rateLimit={"inputTokensPerUnit": 1000, "global": {"redis": {"address": address}}})


ACCEPTED: dict[str, Json] = {
    "a name alone": route(),
    "adapters alone": {"loraAdapters": ["a"], "rules": []},
    "adapters beside an empty name": route(modelName="", loraAdapters=["a"]),
    "no rules": route(rules=[]),
    "weights with a sum of 100": weights(90, 10),
    "weights with another sum": weights(3, 1),
    "a target without traffic": weights(0, 1),
    "no conditions": match(),
    "three ways to match": match(
        headers={"a": {"exact": ""}, "b": {"prefix": "x"}, "X-C.d_e!": {"regex": "^a+$"}}
    ),
    "empty conditions": match(headers={"a": {}}, uri={}, body={}),
    "a regular expression with classes": match(uri={"regex": r"(?i)^/v[12]/[\p{L}\d_-]{1,16}$"}),
    "a backslash before a C": match(uri={"regex": r"\\C"}),
    "a limit without a unit": route(rateLimit={"outputTokensPerUnit": 1}),
    "an empty limit": route(rateLimit={}),
    "a global limit without Redis": route(rateLimit={"global": {}}),
    "Redis by name": redis("redis.cache.svc.cluster.local.:6379"),
    "Redis by a short name": redis("redis:1"),
    "Redis by an IPv4 address": redis("10.0.0.7:65535"),
    "Redis by an IPv6 address": redis("[fd00::7]:6379"),
}

REFUSED: dict[str, tuple[Json, list[str]]] = {
    "no name at all": ({"rules": []}, [NO_NAME]),
    "empty names": (route(modelName="", loraAdapters=[]), [NO_NAME]),
    "an empty adapter": (
        route(loraAdapters=["a", ""]),
        ['spec.loraAdapters[1]: Invalid value: "": must be at least 1 character long'],
    ),
    "too many adapters": (
        route(loraAdapters=list("abcdefghijk")),
        ["spec.loraAdapters: Too many: 11: must have at most 10 items"],
    ),
    "too many rules": (
        route(rules=[{"targetModels": [TARGET]}] * 17),
        ["spec.rules: Too many: 17: must have at most 16 items"],
    ),
    "a rule without targets": (
        route(rules=[{"name": "nowhere"}]),
        ["spec.rules[0].targetModels: Required value"],
    ),
    "a target without a server": (
        route(rules=[{"targetModels": [{"weight": 1}]}]),
        ["spec.rules[0].targetModels[0].modelServerName: Required value"],
    ),
    "a server of another namespace": (
        route(rules=[{"targetModels": [{"modelServerName": "other/llama"}]}]),
        [
            'spec.rules[0].targetModels[0].modelServerName: Invalid value: "other/llama": must be lower-case'
            " letters, digits, dashes and dots, such as my-name or my.name"
        ],
    ),
    "weights below 0 and above 100": (
        weights(-1, 101),
        [
            "spec.rules[0].targetModels[0].weight: Invalid value: -1: must be greater than or equal to 0",
            "spec.rules[0].targetModels[1].weight: Invalid value: 101: must be less than or equal to 100",
        ],
    ),
    "several ways to match one text": (
        match(uri={"exact": "/a", "prefix": "/a", "regex": "a"}),
        [
            "spec.rules[0].modelMatch.uri.prefix: Forbidden: may not be set together with `exact`",
            "spec.rules[0].modelMatch.uri.regex: Forbidden: may not be set together with `exact` or `prefix`",
        ],
    ),
    "an incomplete regular expression": (
        match(headers={"a": {"regex": "("}}),
        [
            'spec.rules[0].modelMatch.headers[a].regex: Invalid value: "(": must be a regular expression in'
            " RE2 syntax: missing ): ("
        ],
    ),
    "a regular expression with a large program": (
        match(uri={"regex": r"\p{L}{1000}"}),
        [
            r'spec.rules[0].modelMatch.uri.regex: Invalid value: "\\p{L}{1000}": must be a regular expression'
            " in RE2 syntax: pattern too large - compile failed"
        ],
    ),
    "a header name with a space": (
        match(headers={"a b": {}}),
        [
            'spec.rules[0].modelMatch.headers: Invalid value: "a b": must be a header name of letters, digits'
            " and any of !#$%&'*+.^_`|~-"
        ],
    ),
    "limits below 1": (
        route(rateLimit={"inputTokensPerUnit": 0, "outputTokensPerUnit": -1}),
        [
            "spec.rateLimit.inputTokensPerUnit: Invalid value: 0: must be greater than or equal to 1",
            "spec.rateLimit.outputTokensPerUnit: Invalid value: -1: must be greater than or equal to 1",
        ],
    ),
    "Redis without an address": (
        route(rateLimit={"global": {"redis": {}}}),
        ["spec.rateLimit.global.redis.address: Required value"],
    ),
}

BAD_ADDRESSES = ["redis", "redis:0", "redis:65536", "redis:06379", ":6379", "a b:1", "redis://redis:6379"]
BAD_ADDRESSES += ["fd00::7:6379", "redis_1:6379", "-redis:1", "user@redis:1", "redis:1/0", "redis:1\n"]
BAD_NUMBERS = ["300.0.0.1:6379", "10.0.0:6379", "[fd00::7::1]:6379", "[1.2.3.4]:1"]


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_route_is_accepted_with_and_without_its_defaults(spec: Json) -> None:
    """Everything that the reference page allows is valid."""
    assert validate(ModelRoute, {"spec": spec}) == []
    assert validate(ModelRoute, with_defaults(VERSION, {"spec": spec})) == []


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(spec: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(ModelRoute, {"spec": spec})] == want


@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_an_address_must_be_a_host_and_a_port(address: str) -> None:
    """The message shows all three forms."""
    (error,) = validate(ModelRoute, {"spec": redis(address)})

    assert str(error.path) == "spec.rateLimit.global.redis.address"
    assert error.body.endswith(
        "must be host:port, such as redis.cache.svc:6379, 10.0.0.7:6379 or [fd00::7]:6379: a host of letters,"
        " digits, '-' and '.' (no '_', no scheme, no path) and a port between 1 and 65535"
    )


@pytest.mark.parametrize("address", BAD_NUMBERS)
def test_a_numeric_host_must_be_a_valid_ip_address(address: str) -> None:
    """No DNS name consists of numbers alone, so an invalid address is not taken for one."""
    (error,) = validate(ModelRoute, {"spec": redis(address)})

    assert error.body.endswith("must have a valid IP address where the host is no DNS name")


CHANGES: dict[str, tuple[Json, Json, list[str]]] = {
    "an unchanged name": (route(), route(rules=[]), []),
    "another name": (
        route(),
        route(modelName="other"),
        [f'spec.modelName: Invalid value: "other": {IMMUTABLE}'],
    ),
    "an empty name instead of a name": (
        route(loraAdapters=["a"]),
        route(loraAdapters=["a"], modelName=""),
        [f'spec.modelName: Invalid value: "": {IMMUTABLE}'],
    ),
    "a name is added": ({"loraAdapters": ["a"], "rules": []}, route(loraAdapters=["a"]), []),
    "a name is removed": (route(loraAdapters=["a"]), {"loraAdapters": ["a"], "rules": []}, []),
    "other adapters": (route(loraAdapters=["a"]), route(loraAdapters=["b"]), []),
}


@pytest.mark.parametrize(("old", "new", "want"), CHANGES.values(), ids=CHANGES.keys())
def test_a_name_cannot_be_replaced(old: Json, new: Json, want: list[str]) -> None:
    """It can be added and removed, as in every release."""
    assert [str(error) for error in validate(ModelRoute, {"spec": new}, {"spec": old})] == want


def test_defaults_are_those_of_the_reference_page() -> None:
    """Weight and unit get defaults; absent objects are not added."""
    spec = with_defaults(VERSION, {"spec": route(rateLimit={"outputTokensPerUnit": 1})})["spec"]

    assert spec["rules"] == [{"targetModels": [{"modelServerName": "llama-8b", "weight": 100}]}]
    assert spec["rateLimit"] == {"outputTokensPerUnit": 1, "unit": "second"}


def rules(*matches: Json | None, name: str = "") -> Json:
    """Return a route spec with one rule for each set of conditions."""
    extra = {"name": name} if name else {}
    return route(
        rules=[
            {**extra, **({} if item is None else {"modelMatch": item}), "targetModels": [TARGET]}
            for item in matches
        ]
    )


ONE = {"headers": {"a": {"exact": "1"}}}
TWO = {"headers": {"a": {"exact": "2"}}}
ADVICE: dict[str, tuple[Json, list[str]]] = {
    "a usual route": (rules(ONE, TWO, None), []),
    "no rules": (route(rules=[]), ["spec.rules: empty: every request is answered with 404"]),
    "an adapter twice": (route(loraAdapters=["a", "b", "a"]), ["spec.loraAdapters[2]: listed before"]),
    "a rule after one for every request": (
        rules(ONE, None, TWO),
        ["spec.rules[2]: never used: spec.rules[1] applies to every request"],
    ),
    "a rule after one for every path": (
        rules({"uri": {"prefix": "/"}}, TWO),
        ["spec.rules[1]: never used: spec.rules[0] applies to every request"],
    ),
    "the same conditions again": (
        rules(ONE, TWO, ONE),
        ["spec.rules[2]: never used: spec.rules[0] has the same modelMatch"],
    ),
    "a path within the prefix of an earlier rule": (
        rules({"uri": {"prefix": "/v1"}}, TWO | {"uri": {"exact": "/v1/chat"}}),
        ["spec.rules[1]: never used: spec.rules[0] applies to whatever it applies to"],
    ),
    "an additional condition, and a header name in capitals": (
        rules(ONE, {"headers": {"A": {"exact": "1"}, "b": {"prefix": "x"}}, "body": {"model": "llama-8b"}}),
        ["spec.rules[1]: never used: spec.rules[0] applies to whatever it applies to"],
    ),
    "conditions that no earlier rule includes": (
        rules(
            {"headers": {"a": {"regex": "1"}}},
            ONE,
            {"uri": {"prefix": "/v1/chat"}},
            {"uri": {"prefix": "/v1"}, "headers": {"a": {"prefix": "1"}}},
            {"uri": {"prefix": "/v1"}, "body": {"model": "llama-8b"}},
        ),
        [],
    ),
    "one name for two rules": (
        rules(ONE, TWO, name="same"),
        ["spec.rules[1].name: an earlier rule has the same name"],
    ),
    "a header with any value": (
        rules(ONE | {"headers": {"x": {}, "a": {"exact": "1"}}}),
        ["spec.rules[0].modelMatch.headers[x]: matches every request, with or without the header"],
    ),
    "a very long header name, with any value": (
        rules({"headers": {"x" * 256: {"regex": ""}, "a": {"exact": "1"}}}),
        [
            f"spec.rules[0].modelMatch.headers[{'x' * 24}...]: matches every request, with or without the"
            " header"
        ],
    ),
    "a condition that matches every path": (
        rules(ONE | {"uri": {"prefix": ""}}),
        ["spec.rules[0].modelMatch.uri: matches every path; set one of exact, prefix and regex"],
    ),
    "conditions that match no path": (
        rules({"uri": {"prefix": "v1/"}}, {"uri": {"exact": "v1"}}, {"uri": {"exact": ""}}),
        [
            "spec.rules[0].modelMatch.uri.prefix: matches no path: every path begins with /",
            "spec.rules[1].modelMatch.uri.exact: matches no path: every path begins with /",
            "spec.rules[2].modelMatch.uri.exact: matches no path: every path begins with /",
        ],
    ),
    "a model that the route does not serve": (
        rules({"body": {"model": "other"}}),
        ["spec.rules[0].modelMatch.body.model: never matches: neither modelName nor one of loraAdapters"],
    ),
    "a model that the route serves": (rules({"body": {"model": "llama-8b"}}), []),
    "weights that are obviously relative": (weights(3, 1), []),
    "two equal weights": (weights(100, 100), []),
    "one weight at its default": (
        weights(20, 100),
        ["spec.rules[0].targetModels[1].weight: weights are relative: 100 of 120 is 83 %"],
    ),
    "one server twice": (
        route(rules=[{"targetModels": [TARGET, TARGET]}]),
        ["spec.rules[0].targetModels[1]: the same target as targetModels[0]"],
    ),
    "a limit without tokens": (
        route(rateLimit={"unit": "day"}),
        ["spec.rateLimit: limits nothing; set inputTokensPerUnit or outputTokensPerUnit"],
    ),
    "a limit below the size of any prompt": (
        route(rateLimit={"inputTokensPerUnit": 10}),
        ["spec.rateLimit.inputTokensPerUnit: a prompt of more than 10 tokens is always refused"],
    ),
    "a global limit without Redis": (
        route(rateLimit={"outputTokensPerUnit": 10, "global": {}}),
        ["spec.rateLimit.global: without redis, each router counts separately"],
    ),
}


@pytest.mark.parametrize(("spec", "want"), ADVICE.values(), ids=ADVICE.keys())
def test_probably_unintended_values_cause_warnings(spec: Json, want: list[str]) -> None:
    """They are valid; each warning has at most 120 characters."""
    assert validate(ModelRoute, {"spec": spec}) == []
    found = route_advice({"spec": spec})
    assert found == want
    assert all(len(sentence) <= 120 for sentence in found)


def test_a_route_refers_to_each_of_its_servers_once() -> None:
    """The path of the reference is where the server is named first."""
    spec = route(rules=[{"targetModels": [TARGET, {"modelServerName": "next"}, TARGET]}, {}])

    found = [(str(one.path), one.kind, one.name) for one in VERSION.references({"spec": spec})]
    assert found == [
        ("spec.rules[0].targetModels[0].modelServerName", "ModelServer", "llama-8b"),
        ("spec.rules[0].targetModels[1].modelServerName", "ModelServer", "next"),
    ]


def test_a_route_without_a_spec_has_no_references() -> None:
    """They are read without an exception."""
    assert list(VERSION.references({})) == []


@given(st.text(max_size=40))
def test_any_text_is_either_compiled_or_gets_an_explanation(text: str) -> None:
    """No regular expression of a user raises an exception."""
    assert isinstance(compile_fault(text), str)


@given(st.sampled_from([{}, {"exact": "a"}, {"prefix": "/a"}, {"regex": "a"}]))
def test_a_rule_applies_to_every_request_only_if_its_conditions_are_empty(condition: Json) -> None:
    """Any text in a condition restricts the rule."""
    assert matches_everything({"uri": condition, "headers": {"a": condition}}) == (not condition)


def test_a_lone_surrogate_is_no_regular_expression() -> None:
    """JSON text can contain one as an escape."""
    assert compile_fault("\ud800") == "invalid UTF-8"


def test_the_escape_for_a_single_byte_is_rejected() -> None:
    """The RE2 library here supports it, but Go's library, which the router uses, does not."""
    assert compile_fault("\\C") == "invalid escape sequence: \\C"
