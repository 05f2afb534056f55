"""Bindings in the joint plan: one inventory, priorities, and decisions without a plan."""

from __future__ import annotations

import asyncio
import random

import pytest
from support.binding_stage import binding, optimizer, policy
from support.joint_stage import JointStage
from support.manifests import variant

from apiserver.schema.json import Json
from controller.bindings.joint import Exchange, Grant
from controller.variants.advisory import NOWHERE, Scope

CAPACITY = "stowplan.dev/capacity"


def pair(**annotations: str) -> Json:
    """Return a binding of an H100 Deployment and a more expensive A100 one, each with 0 to 9 replicas."""
    return optimizer("b", "h100", "a100", annotations=dict(annotations))


def stage(*, h100: int = 9, a100: int = 9, load: float = 10, **more: object) -> JointStage:
    """Return the pair with one H100 replica whose pod has a load; the target value per replica is 10."""
    return JointStage(
        **{  # type: ignore[arg-type]
            "bindings": {"b": pair()},
            "replicas": {"h100": 1, "a100": 0},
            "loads": {"h100": load, "a100": load},
            "room": {"h100": h100, "a100": a100},
        }
        | more
    )


def limits(world: JointStage, name: str = "b") -> list[str]:
    """Return the limits of a decision."""
    found: list[str] = world.bound.status(name)["decision"].get("limitedBy", [])
    return found


async def test_before_the_first_plan_the_running_replicas_are_published() -> None:
    """No target is scaled without knowing that nodes have room."""
    world = stage(load=40, fails=True)
    await world.cycle()
    assert world.bound.published() == {"h100": 1, "a100": 0}
    assert world.bound.reason("Placed") == "AwaitingPlan"


async def test_the_next_decision_publishes_the_plan() -> None:
    """With enough room, only the cheaper type is used."""
    world = stage(load=40)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 4, "a100": 0}
    assert world.bound.reason("Placed") == "AllPlaced"
    assert "Placement" not in limits(world)


async def test_the_more_expensive_type_serves_the_rest_if_the_cheaper_one_has_no_room() -> None:
    """The mix is the cheapest that fits the nodes."""
    world = stage(load=40, h100=3)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 1}
    assert world.bound.reason("Placed") == "AllPlaced"


async def test_the_plan_uses_the_capacities_of_different_replicas() -> None:
    """An A100 replica with half the capacity counts as half a replica."""
    world = stage(load=40, h100=3, bindings={"b": pair(**{CAPACITY: "h100=1,a100=0.5"})})
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 2}


async def test_a_shortage_is_published_with_its_reason() -> None:
    """Replicas that would only be pending are not requested."""
    world = stage(load=60, h100=3, a100=1)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 1}
    assert world.bound.reason("Placed") == "TooLittleRoom"
    assert limits(world)[-1] == "Placement"
    message = world.bound.status()["decision"]["message"]
    assert "needs" in message
    assert "requests/s" not in message


async def test_accelerators_used_by_a_variantautoscaling_are_not_available_to_bindings() -> None:
    """Both kinds share one inventory, and each has its own status."""
    world = stage(
        load=40,
        h100=4,
        a100=0,
        replicas={"h100": 1, "a100": 0, "h100-other": 2},
        autoscalings=[_variant("h100-other")],
    )
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 2, "a100": 0}
    assert world.written
    assert set(world.written) == {"h100-other"}


async def test_the_outcome_for_variantautoscalings_does_not_contain_bindings() -> None:
    """Metrics and saved plans name only variants."""
    world = stage(autoscalings=[_variant("h100-other")], replicas={"h100": 1, "a100": 0, "h100-other": 2})
    outcome = await world.cycle(times=2)
    assert outcome is not None
    assert [item.name for item in outcome.plan.decisions] == ["h100-other"]
    assert {item.name for item in world.planned[-1].variants} == {"h100-other", "b/h100", "b/a100"}


async def test_a_younger_variantautoscaling_of_a_bound_target_is_not_planned() -> None:
    """Its message names the binding; the target is planned once."""
    younger = _variant("h100")
    younger["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    world = stage(autoscalings=[younger])
    outcome = await world.cycle(times=2)
    assert outcome is not None
    (told,) = outcome.gathered.unplanned.values()
    assert told.reason == "TargetClaimed"
    assert "AutoscalingPolicyBinding 'b' is older" in told.message


async def test_bindings_outside_the_scope_of_joint_planning_are_decided_without_the_plan() -> None:
    """The scope is the cluster or some namespaces."""
    for joint in (NOWHERE, Scope(namespaces=frozenset({"other"}))):
        world = stage(load=40, h100=1, a100=0, joint=joint)
        await world.cycle()
        assert world.bound.published() == {"h100": 4, "a100": 0}
        assert world.exchange.take().demands == ()


async def test_targets_without_accelerators_need_no_plan() -> None:
    """Only the policy decides on them."""
    world = stage(load=40, h100=1, accelerators=0)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 4, "a100": 0}
    assert world.bound.reason("Placed") == "NothingToPlace"


async def test_without_a_plan_the_policy_decides_after_four_intervals() -> None:
    """Until then, the decision waits for the plan."""
    world = stage(load=40, fails=True)
    await world.cycle(times=4)
    assert world.bound.reason("Placed") == "AwaitingPlan"
    await world.cycle()
    assert world.bound.reason("Placed") == "NotPlanned"
    assert world.bound.published() == {"h100": 4, "a100": 0}


async def test_a_plan_expires_if_the_planner_fails_later() -> None:
    """After some intervals the policy decides without it."""
    world = stage(load=40, h100=2, a100=0)
    await world.cycle(times=2)
    world.fails = True
    await world.cycle(times=4)
    assert world.bound.published() == {"h100": 2, "a100": 0}
    await world.cycle(times=2)
    assert world.bound.reason("Placed") == "NotPlanned"


async def test_a_paused_binding_is_planned_with_its_running_replicas() -> None:
    """Their accelerators are not available to others."""
    world = stage(load=40, bindings={"b": pair(**{"stowplan.dev/paused": "true"})})
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 1, "a100": 0}
    assert all(item.is_paused for item in world.planned[-1].variants)


async def test_a_changed_list_of_targets_is_planned_at_once() -> None:
    """The published numbers are granted for the current targets."""
    world = stage(load=40, h100=2, a100=1, replicas={"h100": 1, "a100": 0, "h100-more": 0})
    world.room["h100"] = 2
    await world.cycle()
    assert world.bound.published() == {"h100": 2, "a100": 1}
    world.bindings["b"] |= {"spec": optimizer("b", "a100", "h100")["spec"]}
    world.bindings["b"]["metadata"] |= {"generation": 2}
    await world.cycle()
    assert world.bound.published() == {"a100": 1, "h100": 2}


async def test_a_constant_load_keeps_its_mix() -> None:
    """The numbers do not oscillate."""
    world = stage(load=10, h100=3)
    world.bound.loads = {"h100": 10, "a100": 10}
    seen = []
    for _ in range(12):
        await world.cycle(follow=True)
        seen.append(dict(world.bound.replicas))
    assert seen[-6:] == [seen[-1]] * 6


async def test_running_replicas_are_not_replaced_for_an_exact_fit() -> None:
    """3 H100 (1 each) and 2 A100 (1.5 each) serve 6; for 8, two more A100 start and no H100 stops."""
    world = stage(
        load=80 / 6,
        h100=3,
        bindings={"b": pair(**{CAPACITY: "h100=1,a100=1.5"})},
        replicas={"h100": 3, "a100": 2},
    )
    world.bound.loads = {"h100": 80 / 6, "a100": 1.5 * 80 / 6}
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 4}


async def test_rate_limits_hold_for_granted_replicas() -> None:
    """The history contains the published numbers."""
    world = stage(load=80)
    behavior = {
        "scaleUp": {"stablePolicy": {"instances": 2, "percent": 0, "period": "60s"}},
        "scaleDown": {"period": "0s"},
    }
    world.bound.policies = [policy(behavior=behavior)]
    seen = []
    for _ in range(11):
        await world.cycle(follow=True)
        world.bound.loads = {name: 80 / sum(world.bound.replicas.values()) for name in world.bound.replicas}
        seen.append(sum(world.bound.replicas.values()))
    for place, count in enumerate(seen):
        assert count <= min(seen[max(0, place - 4) : place + 1]) + 2
    assert seen[-1] >= 5


async def test_two_targets_with_the_same_name_and_different_kinds_are_distinguished() -> None:
    """A missing target prevents the request to the plan."""
    twice = optimizer("b", "h100", "h100")
    twice["spec"]["optimizerConfiguration"]["params"][1]["target"]["targetRef"]["kind"] = "StatefulSet"
    world = stage(bindings={"b": twice})
    await world.bound.cycle()
    assert world.exchange.take().demands == ()  # the StatefulSet does not exist
    assert world.bound.reason("TargetsResolved") == "TargetNotFound"


def _variant(name: str) -> Json:
    made = variant(name)
    return made | {"metadata": made["metadata"] | {"namespace": "ns", "uid": f"u-{name}", "generation": 1}}


LIMITED = {
    "at once": {"scaleUp": {"stablePolicy": {"period": "0s"}}, "scaleDown": {"period": "0s"}},
    "one by one": {
        "scaleUp": {"stablePolicy": {"instances": 1, "percent": 0, "period": "15s"}},
        "scaleDown": {"instances": 1, "percent": 0, "period": "30s", "stabilizationWindow": "45s"},
    },
    "panic": {
        "scaleUp": {
            "stablePolicy": {"instances": 1, "percent": 0, "period": "60s"},
            "panicPolicy": {"percent": 100, "period": "30s", "panicThresholdPercent": 200},
        },
        "scaleDown": {"period": "0s", "stabilizationWindow": "60s"},
    },
}


@pytest.mark.parametrize("behavior", LIMITED.values(), ids=LIMITED.keys())
async def test_with_enough_room_the_plan_does_not_change_decisions(behavior: Json) -> None:
    """Limits, windows and panic mode have the same effect at each step of a random load."""
    chance = random.Random(7)
    loads = [chance.choice((5, 10, 20, 40, 80)) for _ in range(8)]
    seen = []
    for joint in (NOWHERE, Scope(everywhere=True)):
        world = stage(
            h100=40,
            bindings={"b": binding("b", "h100")},
            replicas={"h100": 1},
            loads={"h100": 10},
            joint=joint,
        )
        world.bound.policies = [policy(behavior=behavior)]
        course = []
        for load in loads:
            world.bound.loads = {"h100": load / max(1, world.bound.replicas["h100"])}
            await world.cycle(follow=True)
            course.append(world.bound.replicas["h100"])
        seen.append(course)
    assert seen[0] == seen[1]


async def test_replicas_without_cost_are_removed_if_they_are_not_needed() -> None:
    """They use accelerators that others need."""
    free = pair()
    free["spec"]["optimizerConfiguration"]["params"][0]["cost"] = 0
    world = stage(bindings={"b": free}, replicas={"h100": 6, "a100": 2}, loads={"h100": 2.5, "a100": 2.5})
    world.bound.policies = [
        policy(behavior=LIMITED["at once"] | {"scaleDown": {"stabilizationWindow": "0s"}})
    ]
    await world.cycle()
    assert sum(filter(None, world.bound.published().values())) == 2


@pytest.mark.parametrize("scale_to_zero", [False, True])
async def test_the_policy_decides_about_the_last_replica_of_a_binding(*, scale_to_zero: bool) -> None:
    """The setting for scaling models to zero has no effect."""
    world = stage(load=0, bindings={"b": binding("b", "h100")}, scale_to_zero=scale_to_zero)
    world.bindings["b"]["spec"]["scalingConfiguration"]["minReplicas"] = 0
    world.bound.policies = [policy(behavior={"scaleDown": {"period": "0s", "stabilizationWindow": "0s"}})]
    await world.cycle(times=3, follow=True)
    assert world.bound.replicas["h100"] == 0


async def test_a_binding_too_large_to_be_planned_does_not_affect_others() -> None:
    """The other binding is planned."""
    huge = pair(**{CAPACITY: "h100=9999,a100=9999"})
    for param in huge["spec"]["optimizerConfiguration"]["params"]:
        param |= {"minReplicas": 100_000, "maxReplicas": 200_000}
    world = stage(
        bindings={"b": huge, "c": binding("c", "h100-c")},
        replicas={"h100": 1, "a100": 0, "h100-c": 1},
        loads={"h100": 10, "a100": 10, "h100-c": 20},
    )
    await world.cycle()
    assert world.bound.reason("Placed", "b") == "NotPlanned"
    assert world.bound.published("c") == {"h100-c": 2}


async def test_a_variant_whose_model_id_equals_that_of_a_binding_in_plans_is_not_planned() -> None:
    """Its demand would be added to that of the binding."""
    impostor = _variant("h100-other")
    impostor["spec"]["modelID"] = "aspb/b"
    world = stage(autoscalings=[impostor], replicas={"h100": 1, "a100": 0, "h100-other": 2})
    outcome = await world.cycle()
    assert outcome is not None
    (told,) = outcome.gathered.unplanned.values()
    assert "choose another one" in told.message


async def test_a_plan_starts_as_soon_as_it_is_requested() -> None:
    """The two loops run independently, and neither waits for the interval of the other."""
    exchange = Exchange()
    await exchange.wait_for_request(within_seconds=0.001)  # no request arrives
    world = stage(load=40)
    world.bound.exchange = exchange
    world.bound.begin()
    deciding = asyncio.create_task(world.bound.cycle())
    await exchange.wait_for_request(within_seconds=60.0)
    taken = exchange.take()
    assert [ask.key for ask in taken.demands] == [("ns", "b")]

    exchange.grant(taken.number - 1, {})  # grants for older requests are dropped
    assert not deciding.done()
    exchange.grant(taken.number, {("ns", "b"): Grant(replicas={("ns", "b/h100"): 2, ("ns", "b/a100"): 2})})
    await deciding
    assert world.bound.published() == {"h100": 2, "a100": 2}
