"""Priorities of targets from InferenceObjectives, and their precedence relative to service classes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.gathering import placed
from support.manifests import deployment, variant
from support.traffic import objective, pod, pool

from apiserver.schema.json import Json
from controller.observe.classes import class_finding, priority_of
from controller.observe.conditions import ConditionReason
from controller.observe.declarations import claim_of
from controller.observe.objectives import NO_OBJECTIVES, Objective, ObjectiveRules, Objectives
from controller.observe.policies import Policies, ServiceClass
from controller.observe.targets import Target, TargetKey, TargetKind, target_of
from controller.planning.snapshot import LOWEST_PRIORITY

CHAT = {"app": "chat"}
POOLS = [pool("llama", CHAT), pool("canary", {"track": "canary"}), pool("old", CHAT, former=True)]
FORMER = "inference.networking.x-k8s.io"


def target(namespace: str = "chat") -> Target:
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
    found = rules.counting([objective("a")], POOLS).of(target(), [])

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
PREMIUM = ServiceClass(name="premium", priority=95, ttft_ms={"llama": 500}, tpot_ms={})
CLASSES = Policies(classes={("classes", "premium"): PREMIUM})
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
