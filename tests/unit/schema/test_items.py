"""Words about the items of a list: by a field beside it, by a choice above it, and about plain texts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from apiserver.schema.choices import ForbiddenBesideText
from apiserver.schema.composition import Chosen, ItemOfEachWhen, ItemsAmongWhen, OneItemWhen
from apiserver.schema.items import (
    AtLeastInItems,
    Beside,
    EqualInItems,
    ForbiddenInItems,
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
    """Return an object that chose to be split, with workers of some roles; no role is none."""
    return {"type": "split", "workers": [{"role": role} if role else {} for role in roles]}


HOLDS: dict[str, tuple[Rule, JsonValue]] = {
    "a cost beside a policy": (FORBIDDEN, pools({"cost": 1}, policy={})),
    "a cost of 0 without one": (FORBIDDEN, pools({"cost": 0})),
    "no list": (FORBIDDEN, {}),
    "a policy of an item alone": (NOT_TWO, pools({"policy": {}})),
    "a cost of 0 is a cost": (REQUIRED, pools({"cost": 0}, policy={})),
    "nothing is required without a policy": (REQUIRED, pools({})),
    "a minimum that is met": (AT_LEAST, pools({"min": 1, "policy": {}})),
    "a minimum of items that have what it takes only": (AT_LEAST, pools({"min": 0})),
    "a minimum of a wrong type is the schema's matter": (AT_LEAST, pools({"min": math.nan, "policy": {}})),
    "numbers that are the same": (EQUAL, pools({"min": 2, "max": 2})),
    "numbers the wrong way round are another rule's matter": (EQUAL, pools({"min": 3, "max": 2})),
    "numbers of which one is absent": (EQUAL, pools({"min": 3}, {"max": 2})),
    "numbers of an item with its own policy": (EQUAL, pools({"min": 1, "max": 2, "policy": {}})),
    "numbers beside a policy of all": (EQUAL, pools({"min": 1, "max": 2}, policy={})),
    "a sum that is enough": (SUM, pools({"min": 0}, {"min": 1}, policy={})),
    "a sum of no items is the schema's matter": (SUM, pools(policy={})),
    "a sum without a policy": (SUM, pools({"min": 0})),
    "one worker": (ONE, split("head")),
    "two workers of another type": (ONE, split("a", "b") | {"type": "whole"}),
    "workers of the right roles": (AMONG, split("tail", "head")),
    "any worker of another type": (AMONG, split("") | {"type": "whole"}),
    "a worker of each role": (EACH, split("tail", "head", "head")),
    "no list of workers is the schema's matter": (EACH, {"type": "split"}),
    "a rate beside its policy": (NEEDS, {"rate": 1, "policy": {}}),
    "a source beside an empty text": (TEXT, {"source": {}, "value": ""}),
    "a source alone": (TEXT, {"source": {}}),
    "a text without spaces": (NoWhitespace(), "registry.example.com/vllm:1"),
    "dots in a name": (BACKSTEPS, "pvc://claim/..a/b.."),
    "a way up of another scheme": (BACKSTEPS, "s3://bucket/../a"),
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
    "numbers that differ": (
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
    "a worker of no role": (
        AMONG,
        split("head", ""),
        "workers[1].role: Invalid value: \"all\": must be 'head' or 'tail' when the pool's `type` is 'split'",
    ),
    "no tail": (
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
    "a way up": (
        BACKSTEPS,
        "disk://a/../b",
        "<nil>: Invalid value: \"disk://a/../b\": must not contain '..' as a part of the path",
    ),
    "a way up at once": (
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
def test_a_word_that_holds_says_nothing(word: Rule, value: JsonValue) -> None:
    """What the word does not speak of is no error either."""
    assert list(word.check(value, FieldPath())) == []


@pytest.mark.parametrize(("word", "value", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_a_word_that_is_broken_says_so_once(word: Rule, value: JsonValue, want: str) -> None:
    """One error, at the item that has to change where there is one."""
    assert [str(error) for error in word.check(value, FieldPath())] == [want]


@pytest.mark.parametrize(("word", "want"), CEL.values(), ids=CEL.keys())
def test_a_word_says_itself_in_cel(word: Rule, want: list[str]) -> None:
    """The server gets the same demand, unless it is too dear for it."""
    assert [rule.rule for rule in word.cel()] == want


@pytest.mark.parametrize(("word", "want"), ENGLISH.values(), ids=ENGLISH.keys())
def test_a_word_says_itself_in_english(word: Rule, want: str) -> None:
    """The reference page gets a sentence."""
    assert word.english() == want


def test_a_word_without_cel_checks_all_the_same() -> None:
    """Only the server does not hear of it."""
    assert len(list(WithoutCel(NEEDS).check({"rate": 1}, FieldPath()))) == 1


def test_cel_names_the_member_where_it_can_only_point_at_the_list() -> None:
    """A message at a list says which member of its items is meant."""
    (rule,) = FORBIDDEN.cel()

    assert rule.as_json()["fieldPath"] == ".pools"
    assert rule.message == "`cost` may not be set when `spec.policy` is not set"
