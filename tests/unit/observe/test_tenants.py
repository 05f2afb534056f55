"""Service classes in clusters with tenants, by the permissions of each object's recorded writer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.gathering import placed
from support.manifests import variant

from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.kinds.privileges import OWN_COST, class_privilege
from apiserver.schema.json import Json
from controller.observe.claim import Claim
from controller.observe.classes import class_finding, class_of, priority_of
from controller.observe.conditions import ConditionReason
from controller.observe.declarations import claim_of, claims_of
from controller.observe.performance import targets_of
from controller.observe.policies import Grants, Policies, Question, ServiceClass, question_of
from controller.observe.prices import cost_refusal
from controller.sizing.records import Targets
from controller.variants.privileges import questions

PREMIUM = ServiceClass(name="Premium", priority=1, ttft_ms={"llama": 500}, tpot_ms={})
OPEN = Policies(classes={("classes", "premium"): PREMIUM})
RIGHT = class_privilege("classes", "premium")
NAMED = {"name": "classes", "key": "premium"}
ANN, BOB = {"username": "ann", "groups": ["devs"]}, {"username": "bob"}


def stored(user: Json | None, **spec: Any) -> Json:
    """Return a variant with a recorded writer, or without one."""
    value = placed(variant("chat", **({"modelID": "llama", "variantCost": None} | spec)))
    annotations = {} if user is None else {WRITTEN_BY: record_of(user)}
    return value | {"metadata": value["metadata"] | {"annotations": annotations}}


def written(user: Json | None, **spec: Any) -> Claim:
    """Return the claim of such a variant."""
    return claim_of(stored(user, **spec))


def asked(user: Json, privilege: object = RIGHT) -> Question:
    """Return the question whether a user has a privilege."""
    found = question_of(written(user), privilege)  # type: ignore[arg-type]
    assert found is not None
    return found


TENANTS = replace(OPEN, grants=Grants(allowed=frozenset({asked(ANN)}), namespace="stowplan-system"))
WAYS = {"named": {"sloClassRef": NAMED}, "by its model": {}}


@pytest.mark.parametrize("spec", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("user", "policies", "has_it"),
    [(ANN, TENANTS, True), (BOB, TENANTS, False), (None, TENANTS, False), (None, OPEN, True)],
    ids=["a writer with the permission", "a writer without it", "no writer", "no writer, and no tenants"],
)
def test_a_service_class_applies_only_if_the_writer_may_use_it(
    user: Json | None, policies: Policies, has_it: bool, spec: Json
) -> None:
    """Otherwise neither its priority nor its latency targets apply, by reference or by model."""
    value = written(user, **spec)

    assert class_of(value, policies) == (PREMIUM if has_it else None)
    assert priority_of(value, policies) == (1 if has_it else 100)
    assert targets_of(value, policies) == (Targets(ttft_seconds=0.5) if has_it else Targets())
    reason = ConditionReason.CLASS_FOUND if has_it else ConditionReason.CLASS_NOT_ALLOWED
    assert class_finding(value, policies)[:2] == (has_it, reason)


def test_the_condition_names_the_user_the_missing_permission_and_the_remedy() -> None:
    """Without a recorded writer, only recording one helps."""
    command = f"a user who has it must run kubectl annotate --overwrite -n ns va chat {WRITTEN_BY}=me"
    begin = "service class classes/premium is not used, so it has priority 100, the lowest:"
    right = "use serviceclasses.stowplan.dev \"classes/premium\" in namespace 'stowplan-system'"
    assert class_finding(written(BOB), TENANTS)[2] == (
        f"{begin} user 'bob', who wrote it, is not allowed to {right}: grant this permission, or {command}"
    )
    assert class_finding(written(None), TENANTS)[2] == (
        f"{begin} no writer is recorded, so no user's permission to {right} applies: {command}"
    )


def test_no_permission_is_checked_for_a_missing_class() -> None:
    """The condition has the same reason as without tenants."""
    value = written(BOB, sloClassRef={"name": "classes", "key": "gone"})

    assert class_finding(value, TENANTS)[1] is ConditionReason.CLASS_NOT_FOUND
    assert questions([value], TENANTS) == frozenset()


def test_a_cost_that_does_not_apply_is_reported() -> None:
    """The default cost is not: no user has set it."""
    assert cost_refusal(written(BOB, variantCost="0"), TENANTS).startswith(
        "the listed price is used, and not the cost 0: user 'bob', who wrote it, is not allowed to use"
        " variantcosts.stowplan.dev in namespace 'stowplan-system'"
    )
    assert cost_refusal(written(BOB, variantCost="10.0"), TENANTS) == ""
    assert cost_refusal(written(BOB, variantCost="0"), OPEN) == ""


def test_objects_of_one_user_share_a_permission_check() -> None:
    """Token and pod of a request do not matter, but other restrictions in `extra` make it another user."""
    named = "authentication.kubernetes.io/"
    tokens = [
        ANN | {"extra": {f"{named}credential-id": [f"JTI={n}"], f"{named}pod-name": [f"flux-{n}"]}}
        for n in range(3)
    ]
    values = [written(user, variantCost="1") for user in tokens]
    restricted = ANN | {"extra": {"scopes.authorization.openshift.io": ["user:info"]}}

    found = questions([*values, written(restricted), written(None)], TENANTS)

    assert {(it.user["username"], bool(it.user.get("extra")), it.privilege) for it in found} == {
        ("ann", False, RIGHT),
        ("ann", False, OWN_COST),
        ("ann", True, RIGHT),
    }
    assert len(found) == 3


def test_malformed_objects_do_not_stop_the_collection_of_permission_checks() -> None:
    """Objects that bypassed admission may lack a model or have an invalid record of the writer."""
    broken = stored(ANN) | {"spec": {"variantCost": 5}}
    odd = stored({"username": "ann", "extra": "x", "groups": {"a": 1}})

    claims = claims_of([broken, odd]).readable

    assert {question.privilege for question in questions(claims, TENANTS)} == {RIGHT}
