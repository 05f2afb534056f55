"""What every right is for: a rule of a role that nobody can name a feature for is none of ours."""

from __future__ import annotations

from support.rights import shipped_rules
from support.rights_needed import ELSEWHERE, NEEDS, READERS, USES


def test_every_rule_has_a_feature_and_every_feature_a_rule() -> None:
    """`make rights` takes each away, and sees where the loss is told."""
    rules = [rule for rule in shipped_rules() if rule.role not in {*READERS, *USES}]

    assert [*map(str, rules)] == sorted(set(map(str, rules)), key=[*map(str, rules)].index)
    assert {str(rule) for rule in rules} == {*NEEDS}
    assert {*ELSEWHERE} <= {(str(rule), verb) for rule in rules for verb in rule.verbs}
    assert {*READERS, *USES} <= {rule.role for rule in shipped_rules()}


def test_rules_name_one_group_each() -> None:
    """Else resources of the one would be allowed in the other."""
    assert all(len(rule.rule["apiGroups"]) == 1 for rule in shipped_rules())
