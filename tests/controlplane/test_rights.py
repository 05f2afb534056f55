"""Each permission is removed once, and the feature that needs it must report what is missing.

`make rights` does so for all permissions; here it is one of each sort.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from rights.needs import ELSEWHERE, NEEDS, RARE, READERS, USES, denial_of
from rights.rules import shipped_rules
from rights.stage import TENANT, RightsStage, rights_stage
from support.campaign import TIMES
from support.manifests import variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rights.rules import Rule


pytestmark = pytest.mark.controlplane

READING = ("list", "watch")
RULES = {str(rule): rule for rule in shipped_rules()}
SAMPLE = {
    "stowplan-models: services": "create",
    "stowplan-controller: resourcequotas": "list",
    "stowplan-controller: variantautoscalings/status": "patch",
    "stowplan-webhooks: subjectaccessreviews": "create",
}
"""Creation for a Model comes first: an earlier Model of this name would have left objects for some 15 s."""
TRIED = [*RULES.values()] if TIMES > 1 else [RULES[name] for name in SAMPLE]
CASES = [
    pytest.param(rule, verb, id=f"{verb} by {rule}")
    for rule in TRIED
    for verb in rule.verbs
    if str(rule) in NEEDS and (str(rule), verb) not in ELSEWHERE
    if TIMES > 1 or SAMPLE[str(rule)] == verb
]
ROLES = [rule for rule in RULES.values() if rule.role in READERS]
USED = [rule for rule in RULES.values() if rule.role in USES]


@pytest.fixture(scope="module")
def stage() -> Iterator[RightsStage]:
    """Yield an installation of every part on its own control plane."""
    with rights_stage() as started:
        yield started


@pytest.mark.parametrize(("rule", "verb"), CASES)
def test_a_missing_permission_is_reported(stage: RightsStage, rule: Rule, verb: str) -> None:
    """The log or a status contains the API server's message, where the feature reports."""
    need = NEEDS[str(rule)]
    denied = [rule.denial(verb, resource) for resource in rule.rule["resources"]]
    # Each kind has its own list and watch; of other requests the first one that is rejected is reported.
    wanted = (
        [[sentence] for sentence in denied]
        if verb in READING
        else [[need.instead] if need.instead else denied]
    )

    where = {"watch": "watch interrupted", "list": need.unread or need.told}.get(verb, need.told)

    with stage.without(rule, verb):
        stage.restart(rule.process, None if verb in READING else need.use)
        if verb == "delete":
            stage.shrink()
        for sentences in wanted:
            stage.wait_until_told(rule.process, where, sentences)


@pytest.mark.parametrize("rule", ROLES if TIMES > 1 else ROLES[:1], ids=str)
def test_users_need_the_role_to_read_and_edit_objects(stage: RightsStage, rule: Rule) -> None:
    """A user with the role may use each of its verbs, and may not once the verb is removed."""
    user = READERS[rule.role]
    found = {}
    with stage.bound(rule, user):
        for verb in rule.verbs:
            before = stage.may(user, rule, verb, want=True)
            with stage.without(rule, verb):
                found[verb] = before, stage.may(user, rule, verb, want=False)

    assert found == dict.fromkeys(rule.verbs, (True, False))


@pytest.mark.parametrize("rule", USED if TIMES > 1 else USED[:1], ids=str)
def test_users_need_the_role_for_a_service_class_or_a_cost(stage: RightsStage, rule: Rule) -> None:
    """Without it the API server rejects the user's object; with it the same object is accepted."""
    (verb,), (resource,), (group,) = rule.verbs, rule.rule["resources"], rule.rule["apiGroups"]
    written = variant("chat", **USES[rule.role])
    with stage.bound(rule, TENANT):
        with stage.without(rule, verb):
            stage.wait_until_answered(TENANT, written, f"cannot {verb} {resource}.{group}")
        stage.wait_until_answered(TENANT, written, "created (server dry run)")


@pytest.mark.parametrize(("name", "verb"), RARE)
def test_rare_requests_need_their_permission(stage: RightsStage, name: str, verb: str) -> None:
    """The process's own code makes the request, with the token of its account."""
    rule = RULES[name]
    kubeconfig = stage.plane.service_account_kubeconfig("stowplan-system", f"stowplan-{rule.process}")
    pods = stage.plane.kubectl("get", "pods", "--selector=app=chat", "--output=json").stdout
    attempt = partial(denial_of, name, verb, kubeconfig=kubeconfig, pod=json.loads(pods)["items"][0])

    assert attempt() == ""
    with stage.without(rule, verb):
        assert rule.denial(verb, rule.rule["resources"][0]) in attempt()
