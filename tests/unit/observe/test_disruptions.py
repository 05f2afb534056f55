"""PodDisruptionBudgets that apply to pods, and the number of evictions that the API server would allow."""

from __future__ import annotations

from typing import Any

import pytest
from support.workloads import WORKER_INDEX, group_pod

from apiserver.schema.json import Json
from controller.observe.movable import Disruptions


def budget(name: str, selector: Json | None, allowed: int = 1, **metadata: Any) -> Json:
    """Return a PodDisruptionBudget of namespace `ns`."""
    return {
        "metadata": {"namespace": "ns", "name": name} | metadata,
        "spec": {} if selector is None else {"selector": selector},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": 2},
    }


def pod(name: str = "p", **labels: str) -> Json:
    """Return a pod of namespace `ns`."""
    return {"metadata": {"namespace": "ns", "name": name, "labels": labels}}


def _asks(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


WEB, DB = pod(app="web"), pod("d", app="db")
GROUPS = [group_pod("big", group, worker) for group in (0, 1) for worker in (0, 1, 2)]
FOUND: dict[str, tuple[list[Json], list[Json], tuple[str, int | None]]] = {
    "without budgets there is no limit": ([], [WEB], ("", None)),
    "the status gives the number of allowed evictions": (
        [budget("b", {"matchLabels": {"app": "web"}}, 3)],
        [WEB, pod("q", app="web")],
        ("b", 3),
    ),
    "a group counts as all of its pods": ([budget("b", {}, 6)], GROUPS, ("b", 2)),
    "a group is evicted if one of its pods may be": ([budget("b", {}, 1)], GROUPS, ("b", 1)),
    "a group stays if none of its pods may be evicted": ([budget("b", {}, 0)], GROUPS, ("b", 0)),
    "a group counts as one pod if the budget selects leaders only": (
        [budget("b", {"matchLabels": {WORKER_INDEX: "0"}}, 2)],
        GROUPS,
        ("b", 2),
    ),
    "a group with separate budgets for leaders and workers stays": (
        [budget("a", _asks(WORKER_INDEX, "In", "0"), 9), budget("b", _asks(WORKER_INDEX, "NotIn", "0"), 9)],
        GROUPS,
        ("", 0),
    ),
    "a budget that selects other pods does not apply": (
        [budget("b", {"matchLabels": {"app": "db"}})],
        [WEB],
        ("", None),
    ),
    "a budget of another namespace does not apply": (
        [budget("b", {}) | {"metadata": {"namespace": "other", "name": "b"}}],
        [WEB],
        ("", None),
    ),
    "a negative number allows nothing": ([budget("b", {}, -1)], [WEB], ("b", 0)),
    "more than a plan can contain": ([budget("b", {}, 2**31 - 1)], [WEB], ("b", 10**6)),
    "an empty selector selects everything": ([budget("b", {})], [WEB], ("b", 1)),
    "no selector selects nothing": ([budget("b", None)], [WEB], ("", None)),
    "a pod under two budgets is never evicted": ([budget("a", {}), budget("b", {})], [WEB], ("", 0)),
    "pods under different budgets are not evicted": (
        [budget("b", {"matchLabels": {"app": "db"}})],
        [WEB, DB],
        ("", 0),
    ),
    "a status of an older generation allows nothing": ([budget("b", {}, generation=3)], [WEB], ("b", 0)),
    "In": ([budget("b", _asks("app", "In", "web", "db"))], [WEB], ("b", 1)),
    "In, without a matching value": ([budget("b", _asks("app", "In", "db"))], [WEB], ("", None)),
    "NotIn": ([budget("b", _asks("tier", "NotIn", "low"))], [WEB], ("b", 1)),
    "Exists": ([budget("b", _asks("app", "Exists"))], [WEB], ("b", 1)),
    "DoesNotExist": ([budget("b", _asks("app", "DoesNotExist"))], [WEB], ("", None)),
    "an unknown operator is taken to select": ([budget("b", _asks("app", "Like"))], [WEB], ("b", 1)),
    "without pods no budget applies": ([budget("b", {})], [], ("", None)),
}


@pytest.mark.parametrize("sentence", FOUND)
def test_the_applicable_budget_and_its_allowed_evictions_are_found(sentence: str) -> None:
    """The result is the budget's name and a number; None means no limit."""
    budgets, pods, expected = FOUND[sentence]

    assert Disruptions(budgets).of(pods) == expected
