"""A Gateway selects the same rule as a ModelRoute for every request, unless a note says that it may not."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st
from support.routes import http_rules, route, rule, said, server, translated

from apiserver.schema.json import Json
from controller.gateways.matching import in_order, match_of
from controller.gateways.reporting import RouteContext, steps

QUOTED = {
    "a quotation without an end": r"\Qa.b",
    "a quotation with an end": r"\Qa.b\E",
    "one quotation after another": r"\Qa\E.\Qb",
    "an escaped backslash before a letter": r"\\Qa",
    "a quotation that ends in a backslash": "\\Qa\\",
}


@pytest.mark.parametrize("regex", QUOTED.values(), ids=QUOTED.keys())
def test_an_expression_matches_anywhere_even_if_it_has_quotations(regex: str) -> None:
    """It is enclosed in other expressions, which must not become part of a quotation."""
    match, notes = match_of({"uri": {"regex": regex}, "headers": {"x-a": {"regex": regex}}}, "spec.rules[0]")

    assert match is not None
    assert not notes
    for found in (match.path.value, dict(match.headers)["x-a"].value):
        for text in ("a.b", "axb", "xa.bx", "\\Qa", "xa\\x", ""):
            assert bool(re2.search(regex, text)) is bool(re2.fullmatch(found, text)), (found, text)


@pytest.mark.parametrize(
    ("text", "is_valid"), [("a" * 1023 + "é", False), ("a b\tc" * 200, True), ("a  b", False)]
)
def test_the_value_of_a_header_is_checked_in_linear_time(text: str, *, is_valid: bool) -> None:
    """All routes wait while a regular expression is evaluated."""
    began = time.process_time()
    match, _ = match_of({"headers": {"x-a": {"exact": text}}}, "spec.rules[0]")

    assert (match is not None) is is_valid
    assert time.process_time() - began < 1.0


HEADER: Final = "x-gateway-model-name"
PATHS: Final = ("/", "/v1", "/v1/chat", "/v1/chat/completions", "/v1/chatter", "/v2")
VALUES: Final = ("", "gold", "golden", "silver")
MODELS: Final = ("chat", "law", "tax", "unknown")
REGEXES: Final = ("^gold", "er$", "gold|silver", "^/v1", "chat")


@dataclass(frozen=True)
class Request:
    """The parts of a request that select a rule. A missing header is empty."""

    path: str
    model: str
    headers: dict[str, str]


def meant(value: Json, request: Request) -> int | None:
    """Return the rule that a ModelRoute selects for a request, or None if the response is 404."""
    spec = value["spec"]
    if request.model not in {spec.get("modelName"), *spec.get("loraAdapters", [])}:
        return None
    for position, item in enumerate(spec["rules"]):
        match = item.get("modelMatch", {})
        model = match.get("body", {}).get("model", request.model)
        headers = match.get("headers", {}).items()
        if (
            model == request.model
            and _leads(match.get("uri", {}), request.path)
            and all(_holds(condition, request.headers.get(name.lower(), "")) for name, condition in headers)
        ):
            return position
    return None


def _leads(condition: Json, path: str) -> bool:
    # The one difference without a note: a prefix that ends in / also matches the path without it.
    return _holds(condition, f"{path}/" if condition.get("prefix", "").endswith("/") else path)


def _holds(condition: Json, text: str) -> bool:
    if "exact" in condition:
        return bool(condition["exact"] == text)
    if "prefix" in condition:
        return text.startswith(condition["prefix"])
    return re.search(condition.get("regex", ""), text) is not None


def taken(rules: list[Json], request: Request) -> str | None:
    """Return the name of the rule that a Gateway selects: the most specific one of those that match."""
    headers = {name: text for name, text in request.headers.items() if text} | {HEADER: request.model}
    found = [
        (_rank(match), -position, item["name"])
        for position, item in enumerate(rules)
        for match in item["matches"]
        if _on_path(match["path"], request.path)
        and all(_is_met(condition, headers.get(condition["name"])) for condition in match["headers"])
    ]
    return max(found)[2] if found else None


def _rank(match: Json) -> tuple[int, int, int]:
    # The rank of regular expressions depends on the Gateway; here it is below every prefix.
    path = match["path"]
    kinds = ("RegularExpression", "PathPrefix", "Exact")
    return (
        kinds.index(path["type"]),
        len(path["value"]) * (path["type"] == "PathPrefix"),
        len(match["headers"]),
    )


def _on_path(condition: Json, path: str) -> bool:
    if condition["type"] == "PathPrefix":
        prefix = condition["value"].rstrip("/")
        return path == prefix or path.startswith(f"{prefix}/")
    return _is_met(condition, path)


def _is_met(condition: Json, text: str | None) -> bool:
    if text is None:
        return False
    if condition["type"] == "Exact":
        return bool(condition["value"] == text)
    return re.fullmatch(condition["value"], text) is not None


CONDITIONS = (
    st.builds(lambda text: {"exact": text}, st.sampled_from(VALUES[1:]))
    | st.builds(lambda text: {"prefix": text}, st.sampled_from(("", "go", "gold")))
    | st.builds(lambda text: {"regex": text}, st.sampled_from(REGEXES[:3]))
)
URIS = (
    st.builds(lambda text: {"exact": text}, st.sampled_from(PATHS))
    | st.builds(lambda text: {"prefix": text}, st.sampled_from(("", "/", "/v1/", "/v1/chat/", "/v1/ch")))
    | st.builds(lambda text: {"regex": text}, st.sampled_from(REGEXES[3:]))
)
MATCHES = st.fixed_dictionaries(
    {},
    optional={
        "headers": st.dictionaries(st.sampled_from(("x-a", "x-b", "X-A")), CONDITIONS, max_size=3),
        "uri": URIS,
        "body": st.builds(lambda text: {"model": text}, st.sampled_from(MODELS)),
    },
)
REQUESTS = st.builds(
    Request,
    path=st.sampled_from(PATHS),
    model=st.sampled_from(MODELS),
    headers=st.fixed_dictionaries({"x-a": st.sampled_from(VALUES), "x-b": st.sampled_from(VALUES)}),
)


def _routed(matches: list[dict[str, Any]]) -> Json:
    rules = [rule(**match) | {"name": f"rule-{position}"} for position, match in enumerate(matches)]
    return route(*rules, loraAdapters=["law", "tax"])


@given(st.lists(MATCHES, min_size=1, max_size=5), st.lists(REQUESTS, min_size=1, max_size=20))
@example(
    [{}, {"uri": {"exact": "/v1"}}, {"headers": {"x-a": {"exact": "gold"}}}],
    [Request(path="/v1", model="chat", headers={"x-a": "gold", "x-b": ""})],
)
def test_a_gateway_selects_the_same_rule(matches: list[dict[str, Any]], requests: list[Request]) -> None:
    """This holds for every translation without notes, whatever the order and conditions of the rules."""
    value = _routed(matches)
    translation = translated(value)
    if said(translation):
        return
    rules = http_rules(translation)
    for request in requests:
        position = meant(value, request)
        assert taken(rules, request) == (None if position is None else f"rule-{position}")


def test_a_rule_precedes_later_rules_that_are_more_specific() -> None:
    """Their conditions are added to its matches."""
    value = _routed([{}, {"uri": {"exact": "/v1"}}, {"headers": {"x-a": {"exact": "gold"}}}])
    first, *_ = http_rules(translated(value))

    matches = [
        (match["path"]["value"], [header["name"] for header in match["headers"]])
        for match in first["matches"]
        if match["headers"][0]["value"] == "chat"
    ]
    assert matches == [("/", [HEADER]), ("/v1", [HEADER]), ("/", [HEADER, "x-a"])]


def test_a_note_says_that_the_order_of_two_rules_depends_on_the_gateway() -> None:
    """The specification does not rank regular expressions and prefixes."""
    value = _routed([{"uri": {"regex": "chat"}}, {"uri": {"prefix": "/v1/"}}])

    assert said(translated(value)) == [
        "spec.rules[1].modelMatch: a Gateway may prefer it to spec.rules[0] where both apply"
    ]


def test_many_overlapping_rules_are_limited_and_cause_a_note() -> None:
    """Combinations double with each rule; an HTTPRoute has a limit, and the translation must be fast."""
    matches = [
        {"headers": {f"x-{number}-{more}": {"exact": "a"} for more in range(number)}} for number in range(16)
    ]
    translation = translated(_routed(matches))

    assert "spec.rules[1].modelMatch: a Gateway may prefer it to spec.rules[0] where both apply" in said(
        translation
    )
    for made in translation.objects:
        sizes = [len(item["matches"]) for item in made["spec"]["rules"]]
        assert sum(sizes) <= 128
        assert max(sizes) <= 64


def overlapping(random: Random) -> Json:
    """Return a route with rules that overlap with all others, of which each applies to some of its names."""
    names = [f"a{number}" for number in range(10)]
    rules = []
    for number in range(16):
        headers: Json = {f"h{place}": {"exact": "x"} for place in random.sample(range(15), 4)}
        some = "|".join(name for name in names if random.random() < 0.8)
        headers["x-gateway-model-name"] = {"regex": f"^({some})$"}
        rules.append(rule(headers=headers, uri={"prefix": "/" + "a/" * number}))
    return route(*rules, loraAdapters=names)


def test_rules_that_all_overlap_take_a_limited_time() -> None:
    """There are up to a thousand combinations for each of ten names, of which an HTTPRoute has 128."""
    random = Random(1)
    values = [overlapping(random) for _ in range(10)]
    in_order.cache_clear()
    began = time.process_time()
    for value in values:
        translated(value)
    assert time.process_time() - began < 1.5


def test_many_routes_to_many_pools_take_a_limited_time() -> None:
    """Each pool is owned by all routes that target it."""
    names = [f"s{number:03}" for number in range(256)]
    made = route(*(rule(*names[start : start + 16]) for start in range(0, 256, 16)))
    routes = [
        {**made, "metadata": {"name": f"r{number}", "namespace": "ns", "uid": f"u{number}"}}
        for number in range(600)
    ]
    servers = {name: server(name) for name in names}
    around = RouteContext(sharing=routes, servers=servers, children={})
    translation = translated(routes[0], *servers.values())
    began = time.process_time()
    found = steps(routes[0], translation, around)

    assert time.process_time() - began < 2.0
    pools = [item for item in found.apply if item["kind"] == "InferencePool"]
    assert [len(item["metadata"]["ownerReferences"]) for item in pools] == [600] * 256
