"""Priorities of bindings that compete for the same nodes, and the conditions that explain them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.binding_stage import binding, optimizer
from support.joint_stage import POLICIES, JointStage
from support.traffic import objective, pool

from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.schema.json import Json
from controller.observe.binding_conditions import BindingReason
from controller.observe.conditions import ConditionReason
from controller.observe.objectives import Objectives
from controller.observe.policies import SettingsProblem

PREMIUM = {"stowplan.dev/service-class": "classes/premium"}
BY_OBJECTIVE = "priority 90 by InferenceObjective 'urgent' (10) of InferencePool 'p'"
LOWEST = "priority 100, the lowest"


def contest(*bindings: Json, **more: object) -> JointStage:
    """Return bindings of which two need four H100 each; there are six, and no A100."""
    return JointStage(
        **{  # type: ignore[arg-type]
            "bindings": {item["metadata"]["name"]: item for item in bindings},
            "replicas": {"h100-low": 1, "h100-high": 1, "a100-high": 0},
            "loads": {"h100-low": 40, "h100-high": 40, "a100-high": 0},
            "room": {"h100": 6, "a100": 0},
        }
        | more
    )


def told(world: JointStage, name: str, kind: str = "ServiceClassResolved") -> tuple[str, str]:
    """Return reason and message of a binding's condition."""
    (found,) = (item for item in world.bound.status(name)["conditions"] if item["type"] == kind)
    return found["reason"], found["message"]


async def test_the_higher_service_class_gets_the_accelerators() -> None:
    """Two bindings need more than is available."""
    world = contest(binding("high", "h100-high", annotations=PREMIUM), binding("low", "h100-low"))
    await world.cycle(times=2)
    assert world.bound.published("high") == {"h100-high": 4}
    assert world.bound.published("low") == {"h100-low": 2}
    assert told(world, "high") == ("ClassFound", "service class 'premium', priority 1")
    assert told(world, "low") == ("NoClass", f"no service class applies: {LOWEST}")


async def test_a_priority_from_an_objective_counts_and_is_named() -> None:
    """The objective's pool selects pods of one target. A missing class of the other binding is named, too."""
    pools = [pool("p", {"app": "h100-high"}, namespace="ns")]
    world = contest(
        optimizer("high", "h100-high", "a100-high"),
        binding("low", "h100-low", annotations={"stowplan.dev/service-class": "classes/gone"}),
        objectives=Objectives([objective("urgent", "p", namespace="ns")], pools),
    )
    await world.cycle(times=2)
    assert world.bound.published("high") == {"h100-high": 4, "a100-high": 0}
    assert world.bound.published("low") == {"h100-low": 2}
    assert told(world, "high") == (
        "ObjectiveFound",
        f"h100-high: no service class applies: {BY_OBJECTIVE}; a100-high: no service class applies: {LOWEST}",
    )
    reason, text = told(world, "low")
    assert reason == "ClassNotFound"
    assert text.endswith(f"contains no service class under 'gone': {LOWEST}")


@pytest.mark.parametrize(("may_use", "granted"), [(("ann",), {"h100-high": 4}), ((), {"h100-high": 3})])
async def test_among_tenants_a_service_class_needs_permission(
    may_use: tuple[str, ...], granted: dict[str, int]
) -> None:
    """Otherwise the class is ignored, and the condition gives the reason."""
    written = {**PREMIUM, WRITTEN_BY: record_of({"username": "ann"})}
    high = binding("b", "h100-high", annotations=written)
    world = contest(high, binding("a", "h100-low"), may_use=may_use)
    await world.cycle(times=2)

    assert world.bound.published("b") == granted
    reason, text = told(world, "b")
    assert reason == ("ClassFound" if may_use else "ClassNotAllowed")
    assert ("user 'ann', who wrote it, is not allowed to use serviceclasses.stowplan.dev" in text) == (
        not may_use
    )
    assert "run kubectl annotate --overwrite -n ns aspb b" in text or may_use


async def test_among_tenants_a_cost_that_is_not_allowed_sets_a_condition() -> None:
    """It names each target; a binding without costs has no such condition."""
    written = {WRITTEN_BY: record_of({"username": "ann"})}
    high = optimizer("high", "h100-high", "a100-high", annotations=written)
    world = contest(high, binding("low", "h100-low"), may_use=())
    await world.cycle(times=2)

    reason, text = told(world, "high", "CostResolved")
    assert reason == "CostNotAllowed"
    assert "and not the cost 11" in text
    assert "user 'ann', who wrote it, is not allowed to" in text
    assert "CostResolved" not in [item["type"] for item in world.bound.status("low")["conditions"]]


async def test_settings_that_are_gone_are_named_in_the_conditions_of_a_binding() -> None:
    """Their last valid content still determines the priority."""
    gone = (
        SettingsProblem(config_map="classes", text="is missing"),
        SettingsProblem(config_map="prices", text="is missing"),
    )
    policies = replace(POLICIES, price_list="prices", problems=gone)
    high, low = binding("high", "h100-high", annotations=PREMIUM), binding("low", "h100-low")
    world = contest(high, low, policies=policies)
    await world.cycle(times=2)

    assert world.bound.published("high") == {"h100-high": 4}
    assert told(world, "high") == (
        "ClassInvalid",
        "service class 'premium', priority 1; ConfigMap classes: is missing",
    )
    reason, text = told(world, "high", "CostResolved")
    assert (reason, text.endswith("ConfigMap prices: is missing")) == ("PriceInvalid", True)


def test_bindings_have_every_reason_of_a_service_class_that_variants_have() -> None:
    """The findings are those of variants; a reason without a counterpart would end a cycle."""
    of_variants = {
        reason for reason in ConditionReason if "CLASS" in reason.name or "OBJECTIVE_F" in reason.name
    }

    assert of_variants <= {*BindingReason}
