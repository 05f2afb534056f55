"""Service classes: by reference and by model, who may use them, and the objectives of pods without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.gathering import placed
from support.manifests import deployment, variant
from support.observations import claim
from support.traffic import objective, pod, pool

from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.kinds.privileges import OWN_COST, class_privilege
from apiserver.schema.json import Json
from controller.observe.claim import Claim
from controller.observe.classes import class_finding, class_of, priority_of
from controller.observe.conditions import ConditionReason, Finding
from controller.observe.declarations import claim_of, claims_of
from controller.observe.objectives import NO_OBJECTIVES, Objective, ObjectiveRules, Objectives
from controller.observe.performance import targets_of
from controller.observe.policies import Grants, Policies, PrivilegeQuestion, ServiceClass, question_of
from controller.observe.prices import cost_refusal
from controller.observe.targets import ScaleTarget, TargetKey, TargetKind, target_of
from controller.planning.snapshot import LOWEST_PRIORITY
from controller.sizing.records import Targets
from controller.variants.privileges import questions

LISTED = "meta/Llama-3.1-70B"
PREMIUM = ServiceClass(name="Premium", priority=1, ttft_ms={LISTED: 1500}, tpot_ms={})
POLICIES = Policies(classes={("classes", "premium"): PREMIUM}, default_classes="classes")
HINT = "priority 100, the lowest; 'Premium' lists 'meta/Llama-3.1-70B': is this model meant?"
CASE = (False, ConditionReason.CLASS_NOT_FOUND, f"no service class lists the model: {HINT}")
LETTER = (True, ConditionReason.NO_CLASS, f"no service class applies: {HINT}")
OTHER = (True, ConditionReason.NO_CLASS, "no service class applies: priority 100, the lowest")
NAMES = {
    "in another case": ("meta/llama-3.1-70b", CASE),
    "with a letter too few": ("meta/lama-3.1-70b", LETTER),
    "of another size": ("meta/llama-3.1-8b", OTHER),
    "a variation of the model": ("meta/llama-3.1-70b-instruct", OTHER),
    "a short variation of the model": ("meta/llama-3.1-70b-awq", OTHER),
    "of another model": ("qwen/qwen2.5-32b", OTHER),
}


@pytest.mark.parametrize(("model_id", "want"), NAMES.values(), ids=NAMES)
def test_a_model_that_a_class_lists_by_almost_the_same_name_is_told(model_id: str, want: Finding) -> None:
    """It has the lowest priority, although the best one may be meant for it.

    Only another case is certainly a mistake: a new model may have almost the name of an older one.
    """
    assert class_finding(claim(model_id=model_id), POLICIES) == want


def test_classes_that_apply_by_reference_only_are_not_compared() -> None:
    """They list models that others may mean."""
    elsewhere = Policies(classes={("others", "premium"): PREMIUM}, default_classes="classes")

    assert class_finding(claim(model_id="meta/llama-3.1-70b"), elsewhere)[0]


USED = ServiceClass(name="Premium", priority=1, ttft_ms={"llama": 500}, tpot_ms={})
OPEN = Policies(classes={("classes", "premium"): USED})
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


def asked(user: Json, privilege: object = RIGHT) -> PrivilegeQuestion:
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

    assert class_of(value, policies) == (USED if has_it else None)
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


CHAT = {"app": "chat"}
POOLS = [pool("llama", CHAT), pool("canary", {"track": "canary"}), pool("old", CHAT, former=True)]
FORMER = "inference.networking.x-k8s.io"


def target(namespace: str = "chat") -> ScaleTarget:
    """Return the Deployment `chat`."""
    key = TargetKey(TargetKind.DEPLOYMENT, namespace, "chat")
    return target_of(key, deployment("chat", product="NVIDIA-L4", accelerators=1))


CASES: Mapping[str, tuple[list[Json], str, int]] = {
    "none": ([], "", LOWEST_PRIORITY),
    "by the labels of the pod template": ([objective("a")], "a", 90),
    "by a label set on a running pod": ([objective("a", "canary")], "a", 90),
    "the highest number of several on one pool": (
        [objective("a", priority=5), objective("b", priority=7), objective("c", priority=-1)],
        "b",
        93,
    ),
    "the highest number of several pools": ([objective("a", priority=5), objective("b", "canary")], "b", 90),
    "of two equal ones the first by name": ([objective("b"), objective("a")], "a", 90),
    "a pool of the former API group": ([objective("a", "old", group=FORMER)], "a", 90),
    "no better than the configured highest priority": ([objective("a", priority=2**62)], "a", 20),
    "a priority of 0 is that of requests without an objective": (
        [objective("a", priority=0)],
        "",
        LOWEST_PRIORITY,
    ),
    "an objective without a priority": ([objective("a", priority=None)], "", LOWEST_PRIORITY),
    "a negative number does not lower the priority": ([objective("a", priority=-9)], "", LOWEST_PRIORITY),
    "a pool of another group": ([objective("a", "old")], "", LOWEST_PRIORITY),
    "a pool that does not exist": ([objective("a", "gone")], "", LOWEST_PRIORITY),
    "no reference to a pool": ([objective("a", kind="Service")], "", LOWEST_PRIORITY),
    "no spec": ([{"metadata": {"namespace": "chat", "name": "a"}}], "", LOWEST_PRIORITY),
}


@pytest.mark.parametrize(("objectives", "name", "priority"), CASES.values(), ids=CASES.keys())
def test_the_objective_with_the_highest_number_gives_the_priority_of_a_target(
    objectives: list[Json], name: str, priority: int
) -> None:
    """All pools that select the target's pods are considered."""
    known = Objectives(objectives, POOLS, highest_priority=20)
    found = known.of(target(), [pod("chat-1", {"app": "chat", "track": "canary"})])

    assert (found.name if found else "") == name
    assert (found.priority if found else LOWEST_PRIORITY) == priority


def test_objectives_apply_only_in_their_own_namespace() -> None:
    """If no objectives are read, none applies."""
    assert Objectives([objective("a")], POOLS).of(target("other"), []) is None
    assert NO_OBJECTIVES.of(target(), []) is None


@pytest.mark.parametrize(
    ("rules", "counts"),
    [
        (ObjectiveRules(), False),
        (ObjectiveRules(everywhere=True), True),
        (ObjectiveRules(namespaces=frozenset({"chat"})), True),
        (ObjectiveRules(namespaces=frozenset({"other"})), False),
    ],
)
def test_objectives_apply_only_in_configured_namespaces(rules: ObjectiveRules, *, counts: bool) -> None:
    """The setting enables all namespaces or a list of them."""
    found = rules.applicable([objective("a")], POOLS).of(target(), [])

    assert (found is not None) is counts
    assert rules.are_in_force is (rules != ObjectiveRules())


def test_a_higher_number_never_gives_a_lower_priority() -> None:
    """Numbers range over all 64-bit integers; 1 is the highest priority."""
    numbers = [-(2**63), -1, 0, 1, 2, 49, 50, 51, 99, 100, 2**63 - 1]
    found = [Objectives([objective("a", priority=number)], POOLS).of(target(), []) for number in numbers]
    priorities = [item.priority if item else LOWEST_PRIORITY for item in found]

    assert priorities == sorted(priorities, reverse=True)
    assert (priorities[0], priorities[-1]) == (LOWEST_PRIORITY, 1)


SAID = Objective(name="urgent", pool="llama", number=10, priority=90)
RANKED = ServiceClass(name="premium", priority=95, ttft_ms={"llama": 500}, tpot_ms={})
CLASSES = Policies(classes={("classes", "premium"): RANKED})
BY = "InferenceObjective 'urgent' (10) of InferencePool 'llama'"
ORDER: Mapping[str, tuple[Json, int, bool, str, str]] = {
    "a class takes precedence, though its priority is lower": (
        {"modelID": "llama"},
        95,
        True,
        "ClassFound",
        f"service class 'premium', priority 95, which takes precedence over {BY}",
    ),
    "a class by reference takes precedence": (
        {"modelID": "qwen", "sloClassRef": {"name": "classes", "key": "premium"}},
        95,
        True,
        "ClassFound",
        f"service class 'premium', priority 95, which takes precedence over {BY}",
    ),
    "without a class the objective applies": (
        {"modelID": "qwen"},
        90,
        True,
        "ObjectiveFound",
        f"no service class applies: priority 90 by {BY}",
    ),
    "a missing class by reference is still an error": (
        {"modelID": "qwen", "sloClassRef": {"name": "classes", "key": "gone"}},
        90,
        False,
        "ClassNotFound",
        "ConfigMap 'classes' of Stowplan's namespace contains no service class under 'gone':"
        f" priority 90 by {BY}",
    ),
}


@pytest.mark.parametrize(("spec", "priority", "holds", "reason", "text"), ORDER.values(), ids=ORDER.keys())
def test_a_service_class_takes_precedence_over_an_objective(
    spec: Json, priority: int, holds: bool, reason: str, text: str
) -> None:
    """The message names the source of the priority."""
    claim = claim_of(placed(variant("chat", **spec)))

    assert priority_of(claim, CLASSES, SAID) == priority
    assert class_finding(claim, CLASSES, SAID) == (holds, ConditionReason(reason), text)
