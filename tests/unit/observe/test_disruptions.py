"""Which budget pods are under, and how many evictions it allows, as the API server would judge."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.disruptions import Disruptions


def budget(name: str, selector: Json | None, allowed: int = 1, **metadata: Any) -> Json:
    """Return a budget of namespace `ns`."""
    return {
        "metadata": {"namespace": "ns", "name": name} | metadata,
        "spec": {} if selector is None else {"selector": selector},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": 2},
    }


def pod(**labels: str) -> Json:
    """Return a pod of namespace `ns`."""
    return {"metadata": {"namespace": "ns", "name": "p", "labels": labels}}


def _asks(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


WEB, DB = pod(app="web"), pod(app="db")
FOUND: dict[str, tuple[list[Json], list[Json], tuple[str, int | None]]] = {
    "without budgets there is no limit": ([], [WEB], ("", None)),
    "what the status allows is allowed": (
        [budget("b", {"matchLabels": {"app": "web"}}, 3)],
        [WEB, WEB],
        ("b", 3),
    ),
    "a budget of others is none": ([budget("b", {"matchLabels": {"app": "db"}})], [WEB], ("", None)),
    "a budget of another namespace is none": (
        [budget("b", {}) | {"metadata": {"namespace": "other", "name": "b"}}],
        [WEB],
        ("", None),
    ),
    "an empty selector selects everything": ([budget("b", {})], [WEB], ("b", 1)),
    "no selector selects nothing": ([budget("b", None)], [WEB], ("", None)),
    "a pod under two budgets is never evicted": ([budget("a", {}), budget("b", {})], [WEB], ("", 0)),
    "pods under different budgets are not evicted": (
        [budget("b", {"matchLabels": {"app": "db"}})],
        [WEB, DB],
        ("", 0),
    ),
    "a status of an older budget allows nothing": ([budget("b", {}, generation=3)], [WEB], ("b", 0)),
    "In": ([budget("b", _asks("app", "In", "web", "db"))], [WEB], ("b", 1)),
    "In, of others": ([budget("b", _asks("app", "In", "db"))], [WEB], ("", None)),
    "NotIn": ([budget("b", _asks("tier", "NotIn", "low"))], [WEB], ("b", 1)),
    "Exists": ([budget("b", _asks("app", "Exists"))], [WEB], ("b", 1)),
    "DoesNotExist": ([budget("b", _asks("app", "DoesNotExist"))], [WEB], ("", None)),
    "an operator that nobody knows may select": ([budget("b", _asks("app", "Like"))], [WEB], ("b", 1)),
    "where there is no pod there is nothing to evict": ([budget("b", {})], [], ("", None)),
}


@pytest.mark.parametrize("sentence", FOUND)
def test_evictions_that_are_allowed(sentence: str) -> None:
    """The name of the budget and a number; None for no limit."""
    budgets, pods, expected = FOUND[sentence]

    assert Disruptions(budgets).of(pods) == expected
