"""A Gateway selects the same rule as a ModelRoute for every request, unless a note says that it may not.

Both sides are implemented here independently, from their specifications.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import example, given
from hypothesis import strategies as st
from support.routes import http_rules, route, rule, said, translated

from apiserver.schema.json import Json

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
    assert matches == [
        ("/", [HEADER]),
        ("/v1", [HEADER]),
        ("/", [HEADER, "x-a"]),
    ]


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
