"""Rules about the items of a list, by a field beside it or a choice above it, and about texts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from apiserver.schema.choices import ForbiddenBesideText
from apiserver.schema.conditions import Beside, Chosen
from apiserver.schema.items import (
    AtLeastInItems,
    EqualInItems,
    ForbiddenInItems,
    ItemOfEachWhen,
    ItemsAmongWhen,
    OneItemWhen,
    RequiredInItems,
    SumAtLeast,
)
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.presence import Needs
from apiserver.schema.rules import Rule, WithoutCel
from apiserver.schema.texts import NoBacksteps, NoWhitespace

WITH = Beside("policy", "spec.policy", is_set=True)
WITHOUT = Beside("policy", "spec.policy", is_set=False)
SPLIT = Chosen("type", ("split",), "the pool's ")

FORBIDDEN = ForbiddenInItems("pools", "cost", WITHOUT, takes_zero=True)
NOT_TWO = ForbiddenInItems("pools", "policy", WITH)
REQUIRED = RequiredInItems("pools", "cost", WITH)
AT_LEAST = AtLeastInItems("pools", "min", 1, "policy", WITHOUT)
EQUAL = EqualInItems("pools", ("min", "max"), "policy", WITHOUT)
SUM = SumAtLeast("pools", "min", 1, WITH)
ONE = OneItemWhen("workers", SPLIT)
AMONG = ItemsAmongWhen("workers", "role", ("head", "tail"), "all", SPLIT)
EACH = ItemOfEachWhen("workers", "role", ("head", "tail"), SPLIT)
NEEDS = Needs("rate", "policy")
TEXT = ForbiddenBesideText("source", "value")
BACKSTEPS = NoBacksteps(("pvc", "disk"))


def pools(*items: Json, **beside: Any) -> Json:
    """Return an object with a list of pools and fields beside it."""
    return {"pools": list(items), **beside}


def split(*roles: str) -> Json:
    """Return an object of type split, with workers of some roles; an empty role is omitted."""
    return {"type": "split", "workers": [{"role": role} if role else {} for role in roles]}


HOLDS: dict[str, tuple[Rule, JsonValue]] = {
    "a cost beside a policy": (FORBIDDEN, pools({"cost": 1}, policy={})),
    "a cost of 0 without a policy": (FORBIDDEN, pools({"cost": 0})),
    "no list": (FORBIDDEN, {}),
    "a policy of an item alone": (NOT_TWO, pools({"policy": {}})),
    "a cost of 0 is a cost": (REQUIRED, pools({"cost": 0}, policy={})),
    "nothing is required without a policy": (REQUIRED, pools({})),
    "a minimum that is met": (AT_LEAST, pools({"min": 1, "policy": {}})),
    "a minimum of an item without a policy": (AT_LEAST, pools({"min": 0})),
    "a minimum of a wrong type, left to the schema": (AT_LEAST, pools({"min": math.nan, "policy": {}})),
    "equal numbers": (EQUAL, pools({"min": 2, "max": 2})),
    "numbers in the wrong order, left to another rule": (EQUAL, pools({"min": 3, "max": 2})),
    "items with one of the two numbers": (EQUAL, pools({"min": 3}, {"max": 2})),
    "different numbers of an item with a policy": (EQUAL, pools({"min": 1, "max": 2, "policy": {}})),
    "different numbers beside a policy of the list": (EQUAL, pools({"min": 1, "max": 2}, policy={})),
    "a sum at the minimum": (SUM, pools({"min": 0}, {"min": 1}, policy={})),
    "a sum of no items, left to the schema": (SUM, pools(policy={})),
    "a sum without a policy": (SUM, pools({"min": 0})),
    "one worker": (ONE, split("head")),
    "two workers of another type": (ONE, split("a", "b") | {"type": "whole"}),
    "workers of the right roles": (AMONG, split("tail", "head")),
    "any worker of another type": (AMONG, split("") | {"type": "whole"}),
    "a worker of each role": (EACH, split("tail", "head", "head")),
    "no list of workers, left to the schema": (EACH, {"type": "split"}),
    "a rate beside its policy": (NEEDS, {"rate": 1, "policy": {}}),
    "a source beside an empty text": (TEXT, {"source": {}, "value": ""}),
    "a source alone": (TEXT, {"source": {}}),
    "a text without spaces": (NoWhitespace(), "registry.example.com/vllm:1"),
    "dots in a name": (BACKSTEPS, "pvc://claim/..a/b.."),
    "a parent directory in a path of another scheme": (BACKSTEPS, "s3://bucket/../a"),
}

BROKEN: dict[str, tuple[Rule, JsonValue, str]] = {
    "a cost without a policy": (
        FORBIDDEN,
        pools({}, {"cost": 1}),
        "pools[1].cost: Forbidden: may not be set when `spec.policy` is not set",
    ),
    "two policies": (
        NOT_TWO,
        pools({"policy": {}}, policy={}),
        "pools[0].policy: Forbidden: may not be set when `spec.policy` is set",
    ),
    "a policy without a cost": (
        REQUIRED,
        pools({}, policy={}),
        "pools[0].cost: Required value: must be set when `spec.policy` is set",
    ),
    "a minimum of zero": (
        AT_LEAST,
        pools({"min": 0, "policy": {}}),
        "pools[0].min: Invalid value: 0: must be greater than or equal to 1 when `policy` is set",
    ),
    "different numbers": (
        EQUAL,
        pools({"min": 1, "max": 2}),
        "pools[0].min: Invalid value: 1: must be equal to `max` when neither `policy` nor `spec.policy` is"
        " set",
    ),
    "a sum of zero": (
        SUM,
        pools({"min": 0}, {}, policy={}),
        "pools: Invalid value: 0: the sum of `min` must be greater than or equal to 1 when `spec.policy` is"
        " set",
    ),
    "two workers": (
        ONE,
        split("head", "tail"),
        "workers: Invalid value: 2: must have exactly one item when the pool's `type` is 'split'",
    ),
    "a worker without a role": (
        AMONG,
        split("head", ""),
        "workers[1].role: Invalid value: \"all\": must be 'head' or 'tail' when the pool's `type` is 'split'",
    ),
    "no worker with the role tail": (
        EACH,
        split("head"),
        "workers: Required value: must have an item with `role` 'tail' when the pool's `type` is 'split'",
    ),
    "a rate without a policy": (
        NEEDS,
        {"rate": 1},
        "rate: Forbidden: may not be set when `policy` is not set",
    ),
    "a source beside a text": (
        TEXT,
        {"source": {}, "value": "a"},
        "source: Forbidden: may not be set when `value` is not empty",
    ),
    "a line break": (
        NoWhitespace(),
        "vllm\n",
        '<nil>: Invalid value: "vllm\\n": must not contain whitespace',
    ),
    "a parent directory in a path": (
        BACKSTEPS,
        "disk://a/../b",
        "<nil>: Invalid value: \"disk://a/../b\": must not contain '..' as a part of the path",
    ),
    "a parent directory at the start of a path": (
        BACKSTEPS,
        "pvc://..",
        "<nil>: Invalid value: \"pvc://..\": must not contain '..' as a part of the path",
    ),
}

CEL: dict[str, tuple[Rule, list[str]]] = {
    "ForbiddenInItems": (
        FORBIDDEN,
        ["has(self.policy) || !has(self.pools) || self.pools.all(item, !has(item.cost) || item.cost == 0)"],
    ),
    "RequiredInItems": (
        REQUIRED,
        ["!has(self.policy) || !has(self.pools) || self.pools.all(item, has(item.cost))"],
    ),
    "AtLeastInItems": (
        AT_LEAST,
        [
            "has(self.policy) || !has(self.pools)"
            " || self.pools.all(item, !has(item.policy) || !has(item.min) || item.min >= 1)"
        ],
    ),
    "EqualInItems": (
        EQUAL,
        [
            "has(self.policy) || !has(self.pools)"
            " || self.pools.all(item, has(item.policy) || !has(item.min) || !has(item.max)"
            " || item.min >= item.max)"
        ],
    ),
    "SumAtLeast": (
        SUM,
        [
            "!has(self.policy) || !has(self.pools) || size(self.pools) == 0"
            " || self.pools.map(item, has(item.min) ? item.min : 0).sum() >= 1"
        ],
    ),
    "OneItemWhen": (
        ONE,
        ["!has(self.type) || !(self.type in ['split']) || !has(self.workers) || size(self.workers) <= 1"],
    ),
    "ItemsAmongWhen": (
        AMONG,
        [
            "!has(self.type) || !(self.type in ['split']) || !has(self.workers)"
            " || self.workers.all(item, (has(item.role) ? item.role : 'all') in ['head', 'tail'])"
        ],
    ),
    "ItemOfEachWhen": (
        EACH,
        [
            "!has(self.type) || !(self.type in ['split']) || !has(self.workers)"
            f" || self.workers.exists(item, has(item.role) && item.role == '{role}')"
            for role in ("head", "tail")
        ],
    ),
    "Needs": (NEEDS, ["!has(self.rate) || has(self.policy)"]),
    "ForbiddenBesideText": (TEXT, ["!has(self.source) || !has(self.value) || size(self.value) == 0"]),
    "NoWhitespace": (NoWhitespace(), [r"!self.matches('\\s')"]),
    "NoBacksteps": (
        BACKSTEPS,
        ["!(self.startsWith('pvc://') || self.startsWith('disk://')) || !(self + '/').contains('/../')"],
    ),
    "WithoutCel": (WithoutCel(NEEDS), []),
}

ENGLISH: dict[str, tuple[Rule, str]] = {
    "ForbiddenInItems": (FORBIDDEN, "`cost` of `pools` may not be set when `spec.policy` is not set."),
    "RequiredInItems": (REQUIRED, "`cost` of `pools` is required when `spec.policy` is set."),
    "AtLeastInItems": (
        AT_LEAST,
        "`min` of `pools` is 1 at least where `policy` of the same item is set, when `spec.policy` is not"
        " set.",
    ),
    "EqualInItems": (
        EQUAL,
        "`min` of `pools` equals `max` where `policy` of the same item is not set, when `spec.policy` is not"
        " set.",
    ),
    "SumAtLeast": (SUM, "`min` of all `pools` is 1 at least in sum when `spec.policy` is set."),
    "OneItemWhen": (ONE, "`workers` has exactly one item when the pool's `type` is 'split'."),
    "ItemsAmongWhen": (
        AMONG,
        "`role` of every item of `workers` is 'head' or 'tail' when the pool's `type` is 'split'.",
    ),
    "ItemOfEachWhen": (
        EACH,
        "`workers` has an item with `role` 'head' and one with 'tail' when the pool's `type` is 'split'.",
    ),
    "Needs": (NEEDS, "`rate` may be set only together with `policy`."),
    "ForbiddenBesideText": (TEXT, "`source` may not be set when `value` is not empty."),
    "NoWhitespace": (NoWhitespace(), "Without whitespace."),
    "NoBacksteps": (BACKSTEPS, "Without `..` in a path of `pvc://` or `disk://`."),
    "WithoutCel": (WithoutCel(NEEDS), NEEDS.english()),
}


@pytest.mark.parametrize(("word", "value"), HOLDS.values(), ids=HOLDS.keys())
def test_a_rule_that_holds_returns_no_error(word: Rule, value: JsonValue) -> None:
    """Values that the rule does not apply to are no error either."""
    assert list(word.check(value, FieldPath())) == []


@pytest.mark.parametrize(("word", "value", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_a_violated_rule_returns_one_error(word: Rule, value: JsonValue, want: str) -> None:
    """The error is at the item that has to change, if there is one."""
    assert [str(error) for error in word.check(value, FieldPath())] == [want]


@pytest.mark.parametrize(("word", "want"), CEL.values(), ids=CEL.keys())
def test_a_rule_is_expressed_in_cel(word: Rule, want: list[str]) -> None:
    """The API server checks the same, unless the expression is too costly."""
    assert [rule.rule for rule in word.cel()] == want


@pytest.mark.parametrize(("word", "want"), ENGLISH.values(), ids=ENGLISH.keys())
def test_a_rule_is_described_in_english(word: Rule, want: str) -> None:
    """The sentence is printed on the reference page."""
    assert word.english() == want


def test_a_rule_without_cel_is_still_checked() -> None:
    """Only the API server does not get it."""
    assert len(list(WithoutCel(NEEDS).check({"rate": 1}, FieldPath()))) == 1


def test_the_cel_message_names_the_member_if_the_path_is_that_of_the_list() -> None:
    """The path cannot point at a member of the items."""
    (rule,) = FORBIDDEN.cel()

    assert rule.as_json()["fieldPath"] == ".pools"
    assert rule.message == "`cost` may not be set when `spec.policy` is not set"
