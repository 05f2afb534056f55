"""Bindings planned with everything else: one inventory, priorities, and what stands without a plan."""

from __future__ import annotations

import asyncio
import random

import pytest
from support.binding_stage import binding, optimizer, policy
from support.joint_stage import JointStage
from support.manifests import variant

from apiserver.schema.json import Json
from controller.reconcilers.advisory import NOWHERE, Scope
from controller.reconcilers.joint import Exchange, Grant

CAPACITY = "stowplan.dev/capacity"


def pair(**annotations: str) -> Json:
    """Return a binding of an H100 Deployment and a dearer A100 one, each from 0 to 9 replicas."""
    return optimizer("b", "h100", "a100", annotations=dict(annotations))


def stage(*, h100: int = 9, a100: int = 9, load: float = 10, **more: object) -> JointStage:
    """Return the pair with one H100 replica, whose pod has a load; 10 is what one replica is for."""
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
    """Return what limited a decision."""
    found: list[str] = world.bound.status(name)["decision"].get("limitedBy", [])
    return found


async def test_before_the_first_plan_what_runs_stands() -> None:
    """Nothing is scaled to what nobody has found room for."""
    world = stage(load=40, fails=True)
    await world.cycle()
    assert world.bound.published() == {"h100": 1, "a100": 0}
    assert world.bound.reason("Placed") == "AwaitingPlan"


async def test_the_next_decision_publishes_what_was_planned() -> None:
    """With room for all, the cheaper type serves alone."""
    world = stage(load=40)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 4, "a100": 0}
    assert world.bound.reason("Placed") == "AllPlaced"
    assert "Placement" not in limits(world)


async def test_where_the_cheaper_type_has_no_room_the_other_one_serves() -> None:
    """The mix costs the least that nodes allow."""
    world = stage(load=40, h100=3)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 1}
    assert world.bound.reason("Placed") == "AllPlaced"


async def test_unlike_replicas_serve_together_what_is_required() -> None:
    """Capacities count in the plan, too."""
    world = stage(load=40, h100=3, bindings={"b": pair(**{CAPACITY: "h100=1,a100=0.5"})})
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 2}


async def test_a_shortage_is_published_with_its_reason() -> None:
    """Nobody is asked to start what would only wait for a node."""
    world = stage(load=60, h100=3, a100=1)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 1}
    assert world.bound.reason("Placed") == "TooLittleRoom"
    assert limits(world)[-1] == "Placement"
    message = world.bound.status()["decision"]["message"]
    assert "needs" in message
    assert "requests/s" not in message


async def test_what_a_variantautoscaling_holds_is_not_counted_on() -> None:
    """Both kinds share one inventory, each with its own status."""
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


async def test_what_is_told_of_variantautoscalings_leaves_bindings_out() -> None:
    """Metrics and saved plans name variants only."""
    world = stage(autoscalings=[_variant("h100-other")], replicas={"h100": 1, "a100": 0, "h100-other": 2})
    outcome = await world.cycle(times=2)
    assert outcome is not None
    assert [item.name for item in outcome.plan.decisions] == ["h100-other"]
    assert {item.name for item in world.planned[-1].variants} == {"h100-other", "b/h100", "b/a100"}


async def test_a_younger_variantautoscaling_on_a_bound_target_is_told_so() -> None:
    """It names the binding, whose target is planned once."""
    younger = _variant("h100")
    younger["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    world = stage(autoscalings=[younger])
    outcome = await world.cycle(times=2)
    assert outcome is not None
    (told,) = outcome.gathered.unplanned.values()
    assert told.reason == "TargetClaimed"
    assert "AutoscalingPolicyBinding 'b' is older" in told.message


async def test_bindings_elsewhere_are_decided_on_alone() -> None:
    """It is a choice, for the cluster or a namespace."""
    for joint in (NOWHERE, Scope(namespaces=frozenset({"other"}))):
        world = stage(load=40, h100=1, a100=0, joint=joint)
        await world.cycle()
        assert world.bound.published() == {"h100": 4, "a100": 0}
        assert world.exchange.taken().asks == ()


async def test_targets_without_accelerators_need_no_place() -> None:
    """The policy decides on them alone."""
    world = stage(load=40, h100=1, accelerators=0)
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 4, "a100": 0}
    assert world.bound.reason("Placed") == "NothingToPlace"


async def test_a_plan_that_does_not_come_is_not_waited_for_without_end() -> None:
    """After four intervals the policy decides alone."""
    world = stage(load=40, fails=True)
    await world.cycle(times=4)
    assert world.bound.reason("Placed") == "AwaitingPlan"
    await world.cycle()
    assert world.bound.reason("Placed") == "NotPlanned"
    assert world.bound.published() == {"h100": 4, "a100": 0}


async def test_a_plan_that_came_once_counts_only_for_a_while() -> None:
    """A planner that fails later is the same."""
    world = stage(load=40, h100=2, a100=0)
    await world.cycle(times=2)
    world.fails = True
    await world.cycle(times=4)
    assert world.bound.published() == {"h100": 2, "a100": 0}
    await world.cycle(times=2)
    assert world.bound.reason("Placed") == "NotPlanned"


async def test_a_paused_binding_is_planned_as_it_runs() -> None:
    """What it holds is nobody else's."""
    world = stage(load=40, bindings={"b": pair(**{"stowplan.dev/paused": "true"})})
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 1, "a100": 0}
    assert all(item.is_paused for item in world.planned[-1].variants)


async def test_a_new_target_is_planned_at_once() -> None:
    """What is published was granted for the targets of today."""
    world = stage(load=40, h100=2, a100=1, replicas={"h100": 1, "a100": 0, "h100-more": 0})
    world.room["h100"] = 2
    await world.cycle()
    assert world.bound.published() == {"h100": 2, "a100": 1}
    world.bindings["b"] |= {"spec": optimizer("b", "a100", "h100")["spec"]}
    world.bindings["b"]["metadata"] |= {"generation": 2}
    await world.cycle()
    assert world.bound.published() == {"a100": 1, "h100": 2}


async def test_a_steady_load_keeps_its_mix() -> None:
    """Nothing turns while nothing changes."""
    world = stage(load=10, h100=3)
    world.bound.loads = {"h100": 10, "a100": 10}
    seen = []
    for _ in range(12):
        await world.cycle(follow=True)
        seen.append(dict(world.bound.replicas))
    assert seen[-6:] == [seen[-1]] * 6


async def test_what_runs_is_not_exchanged_for_an_exact_fit() -> None:
    """Six are served by 3 and 2 of one and a half; for eight, two more of those start and none stops."""
    world = stage(
        load=80 / 6,
        h100=3,
        bindings={"b": pair(**{CAPACITY: "h100=1,a100=1.5"})},
        replicas={"h100": 3, "a100": 2},
    )
    world.bound.loads = {"h100": 80 / 6, "a100": 1.5 * 80 / 6}
    await world.cycle(times=2)
    assert world.bound.published() == {"h100": 3, "a100": 4}


async def test_limits_of_a_period_hold_for_what_the_plan_granted() -> None:
    """The history has what was published."""
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


async def test_two_targets_of_one_name_are_two() -> None:
    """A target that is not there is no ask."""
    twice = optimizer("b", "h100", "h100")
    twice["spec"]["optimizerConfiguration"]["params"][1]["target"]["targetRef"]["kind"] = "StatefulSet"
    world = stage(bindings={"b": twice})
    await world.bound.cycle()
    assert world.exchange.taken().asks == ()  # the StatefulSet does not exist
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
async def test_with_room_for_all_the_plan_changes_nothing(behavior: Json) -> None:
    """Limits, windows and panic hold alike, step by step, on any course of the load."""
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


async def test_what_costs_nothing_goes_all_the_same_when_it_is_not_needed() -> None:
    """A free replica holds accelerators that others want."""
    free = pair()
    free["spec"]["optimizerConfiguration"]["params"][0]["cost"] = 0
    world = stage(bindings={"b": free}, replicas={"h100": 6, "a100": 2}, loads={"h100": 2.5, "a100": 2.5})
    world.bound.policies = [
        policy(behavior=LIMITED["at once"] | {"scaleDown": {"stabilizationWindow": "0s"}})
    ]
    await world.cycle()
    assert sum(filter(None, world.bound.published().values())) == 2


@pytest.mark.parametrize("scale_to_zero", [False, True])
async def test_a_policy_s_own_grace_period_decides_about_the_last_replica(*, scale_to_zero: bool) -> None:
    """That of models is not for it."""
    world = stage(load=0, bindings={"b": binding("b", "h100")}, scale_to_zero=scale_to_zero)
    world.bindings["b"]["spec"]["scalingConfiguration"]["minReplicas"] = 0
    world.bound.policies = [policy(behavior={"scaleDown": {"period": "0s", "stabilizationWindow": "0s"}})]
    await world.cycle(times=3, follow=True)
    assert world.bound.replicas["h100"] == 0


async def test_a_binding_beyond_all_counting_stops_nobody_else() -> None:
    """It is not planned; the other one is."""
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


async def test_a_model_called_as_a_binding_is_in_plans_is_not_planned() -> None:
    """Its demand would be mixed with that of the binding."""
    impostor = _variant("h100-other")
    impostor["spec"]["modelID"] = "aspb/b"
    world = stage(autoscalings=[impostor], replicas={"h100": 1, "a100": 0, "h100-other": 2})
    outcome = await world.cycle()
    assert outcome is not None
    (told,) = outcome.gathered.unplanned.values()
    assert "choose another one" in told.message


async def test_a_plan_is_made_as_soon_as_somebody_asks_for_it() -> None:
    """Both run by themselves; nobody waits for the other one's interval."""
    exchange = Exchange()
    await exchange.wanted(within_seconds=0.001)  # nobody does
    world = stage(load=40)
    world.bound.exchange = exchange
    world.bound.begin()
    deciding = asyncio.create_task(world.bound.cycle())
    await exchange.wanted(within_seconds=60.0)
    taken = exchange.taken()
    assert [ask.key for ask in taken.asks] == [("ns", "b")]

    exchange.grant(taken.number - 1, {})  # an answer to older asks is none
    assert not deciding.done()
    exchange.grant(taken.number, {("ns", "b"): Grant(replicas={("ns", "b/h100"): 2, ("ns", "b/a100"): 2})})
    await deciding
    assert world.bound.published() == {"h100": 2, "a100": 2}
