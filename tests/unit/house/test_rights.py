"""RBAC rules of the shipped roles: each is needed by a known feature."""

from __future__ import annotations

import pytest
from rights.needs import ELSEWHERE, NEEDS, READERS, USES
from rights.rules import shipped_rules

from apiserver.kinds.registry import KINDS

PAGE = "stowplan-dashboard"
"""The page about the fleet says itself what it may not read."""


def test_every_rule_belongs_to_a_feature_and_every_feature_has_a_rule() -> None:
    """`make rights` removes each rule in turn and checks where the missing permission is reported."""
    rules = [rule for rule in shipped_rules() if rule.role not in {*READERS, *USES, PAGE}]

    assert [*map(str, rules)] == sorted(set(map(str, rules)), key=[*map(str, rules)].index)
    assert {str(rule) for rule in rules} == {*NEEDS}
    assert {*ELSEWHERE} <= {(str(rule), verb) for rule in rules for verb in rule.verbs}
    assert {*READERS, *USES} <= {rule.role for rule in shipped_rules()}


@pytest.mark.parametrize("role", sorted({*READERS.values()}))
def test_users_can_edit_and_view_every_kind(role: str) -> None:
    """Each family has roles that are aggregated to the built-in ones."""
    allowed = {
        (group, resource)
        for rule in shipped_rules()
        if READERS.get(rule.role) == role
        for group in rule.rule["apiGroups"]
        for resource in rule.rule["resources"]
    }

    assert {(kind.group, kind.plural) for kind in KINDS} - allowed == set()


def test_each_rule_has_exactly_one_api_group() -> None:
    """A rule with two groups would allow resources of the same name in both."""
    assert all(len(rule.rule["apiGroups"]) == 1 for rule in shipped_rules())
