"""Rules on generated objects: whether a value breaks a rule agrees with the errors that the rule returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest
from differential.fuzz import versions
from differential.generate import case
from support.campaign import often

from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Rule
from apiserver.schema.ruling import Ruled, finder, is_check, rules_on
from apiserver.schema.validation import judge

VERSIONS: Final = {f"{kind.kind}/{version.name}": (kind, version) for kind, version in versions([])}
OBJECTS: Final = often(60)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_value_breaks_a_rule_if_and_only_if_the_rule_returns_an_error(name: str) -> None:
    """Errors are a list or tuple, whose truth value is whether there are any, unlike that of a generator."""
    kind, version = VERSIONS[name]
    compiled = judge(version.declaration)
    rules = rules_on(compiled.node, is_check)
    assert rules is not None
    find = finder(rules)
    broken = 0
    for number in range(OBJECTS):
        value = compiled.fitting(json.loads(case(kind, version, number).body))
        verdicts = [_verdict(rule, below) for rule, below in _asked(rules, value)]
        assert len(find(value)) == sum(verdicts), number
        broken += sum(verdicts)
    assert broken or kind.kind == "InferenceObjective"  # it has only a rule on names, rarely broken


def _verdict(rule: Rule, value: JsonValue) -> bool:
    found = rule.check(value, FieldPath())
    assert isinstance(found, list | tuple), rule
    assert rule.is_broken(value) is bool(found), (rule, value)
    return bool(found)


def _asked(here: Ruled, value: JsonValue) -> Iterator[tuple[Rule, JsonValue]]:
    """Yield each rule with each value that it applies to; no list is longer than its limit."""
    value = value if here.most is None else value[: here.most]
    yield from ((rule, value) for rule in here.rules)
    for name, below in here.members:
        if name in value:
            yield from _asked(below, value[name])
    for inside in value if here.items else ():
        assert here.items is not None
        yield from _asked(here.items, inside)
    for inside in value.values() if here.values else ():
        assert here.values is not None
        yield from _asked(here.values, inside)
