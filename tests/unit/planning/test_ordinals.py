"""Replicas that wait: for lower ordinals to be ready, or in vain for nodes to be added."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from support.campaign import often
from support.planning_builders import load, node, variant
from support.small_snapshots import constrained_snapshot

from controller.planning.checker import check
from controller.planning.cluster import Budget, NodePool, Quota
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import PlannedModel, Replica, Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.decision import Plan, VariantDecision
    from controller.planning.load import ModelLoad
    from controller.planning.snapshot import Variant

SETTINGS = Settings(deterministic_seconds=2.0, wall_seconds=60.0)


def numbered(*ready: bool, has_ordinals: bool = True) -> Variant:
    """Return a variant with one replica per node, the lowest ordinal first; each serves 1,000."""
    replicas = [Replica(name=f"a-{i}", node=f"n{i}", ready=is_ready) for i, is_ready in enumerate(ready)]
    if not has_ordinals:
        replicas.sort(key=lambda item: -item.ready)
    return replace(
        variant("a", size=4, serves=1000),
        replicas=tuple(reversed(replicas)),
        current_replicas=len(ready),
        ready_ordinals=tuple(i for i, is_ready in enumerate(ready) if is_ready and has_ordinals),
    )


def decided(
    *variants: Variant, rates: Sequence[float], nodes: Sequence[int] = range(4)
) -> Sequence[VariantDecision]:
    """Return the decisions for variants of different models with some loads."""
    world = Snapshot(
        nodes=tuple(node(f"n{number}", 4) for number in nodes),
        variants=variants,
        loads=tuple(load(rate, item.model_id) for item, rate in zip(variants, rates, strict=True)),
    )
    found = plan(world, SETTINGS)
    assert found.solver.is_answered, found.solver.message
    return found.decisions


@pytest.mark.parametrize(
    ("item", "rate", "want"),
    [
        pytest.param(numbered(False, True), 300, 2, id="the only ready one stays"),
        pytest.param(numbered(False, True, True), 300, 2, id="a ready one stays, the other is removed"),
        pytest.param(numbered(False, True, True), 1500, 3, id="as many as the load needs stay"),
        pytest.param(numbered(True, False), 300, 1, id="one that is not ready is removed"),
        pytest.param(numbered(True, False, True), 300, 1, id="the lowest ordinal is enough"),
        pytest.param(numbered(False, True, has_ordinals=False), 300, 1, id="ready ones go last anyway"),
        pytest.param(numbered(False, True), 0, 1, id="without load none is needed"),
        pytest.param(replace(numbered(False, True), pinned_replicas=1), 300, 1, id="a pin takes precedence"),
        pytest.param(replace(numbered(False, True), max_replicas=1), 300, 1, id="maxReplicas is respected"),
    ],
)
def test_ready_replicas_are_kept_as_long_as_lower_ordinals_are_not_ready(
    item: Variant, rate: float, want: int
) -> None:
    """The load alone needs one replica, or two."""
    (found,) = decided(item, rates=(rate,))

    assert found.replicas == want


def test_the_message_says_why_replicas_beyond_the_load_stay() -> None:
    """Otherwise the utilization would suggest that one is superfluous."""
    (found,) = decided(numbered(False, True), rates=(300,))

    assert found.message.endswith("; ready replicas stay until those with lower ordinals are ready")


def test_the_message_does_not_say_so_if_the_load_needs_as_many() -> None:
    """The lower ordinal then stays for the load, and still does when it is ready."""
    (found,) = decided(numbered(False, True), rates=(1500,))

    assert found.replicas == 2
    assert "lower ordinals" not in found.message


def waiting(*ready: bool, **changes: Any) -> Variant:
    """Return such a variant whose lowest ordinal has no node."""
    item = numbered(False, *ready)
    unbound = replace(item.replicas[-1], node=None)
    return replace(item, replicas=(unbound, *item.replicas[:-1]), **changes)


def test_ready_replicas_do_not_make_room_for_lower_ordinals() -> None:
    """The node of the lowest one has failed, and there is no other: a smaller number would help nobody."""
    (found,) = decided(waiting(True, True), rates=(2500,), nodes=(1, 2))

    assert found.replicas == 3
    assert "; 1 replica without a place: fewer would remove ready ones" in found.message


def test_a_quota_takes_precedence_over_replicas_that_wait() -> None:
    """The other model gets what the waiting replica would use of the quota."""
    other = variant("other", size=4, serves=1000, model_id="other")
    world = Snapshot(
        nodes=(node("n1", 4), node("n2", 4, accelerator="A100")),
        variants=(waiting(True, priority=50), replace(other, accelerator="A100", priority=1)),
        loads=(load(300), load(300, "other")),
        quotas=(Quota(name="q", namespace="llm", accelerators=8),),
    )

    found = plan(world, SETTINGS)

    assert found.solver.is_answered, found.solver.message
    assert {item.name: item.replicas for item in found.decisions} == {"a": 1, "other": 1}


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"budgets": (Budget(name="b", cost_per_hour=Decimal(2), is_strict=True),)}, id="budget"),
        pytest.param(
            {"models": (PlannedModel(namespace="llm", model_id="llama", max_replicas=2),)}, id="model"
        ),
    ],
)
def test_limits_that_apply_at_once_take_precedence_over_replicas_that_wait(limits: dict[str, Any]) -> None:
    """Three replicas exist, and two are allowed."""
    item = waiting(True, True, cost_per_replica=Decimal(1))
    world = Snapshot(
        nodes=(node("n1", 4), node("n2", 4)), variants=(item,), loads=(load(2500, item.model_id),), **limits
    )

    found = plan(world, SETTINGS)

    assert found.solver.is_answered, found.solver.message
    assert [item.replicas for item in found.decisions] == [2]


def test_higher_priorities_preempt_them() -> None:
    """They count like replicas that the load needs; the last one of a model stays."""
    urgent = replace(variant("urgent", size=4, serves=1000, model_id="urgent"), priority=1)
    spare = replace(numbered(False, True), priority=50)

    found = decided(spare, urgent, rates=(300, 10_000), nodes=(0, 1))

    assert {item.name: item.replicas for item in found} == {"a": 1, "urgent": 1}


def test_plans_with_ordinals_follow_all_rules() -> None:
    """In random clusters, any replicas but the first are ready. Some decisions differ for that reason."""
    settings, kept = replace(SETTINGS, relief_solves=0), 0
    for seed in range(often(100)):
        random = Random(seed)
        plain = constrained_snapshot(random)
        world = replace(plain, variants=tuple(_with_ordinals(random, item) for item in plain.variants))
        found = plan(world, settings)
        assert check(world, found) == (), seed
        same = replace(world, variants=tuple(map(_without_ordinals, world.variants)))
        usual = plan(same, settings)
        kept += [item.replicas for item in found.decisions] != [item.replicas for item in usual.decisions]
    assert kept > 5


def _with_ordinals(random: Random, item: Variant) -> Variant:
    """Return a variant with more replicas than most loads need, of which higher ordinals are ready."""
    current = len(item.replicas) + random.randint(0, 2)
    ready = tuple(number for number in range(1, current) if random.random() < 0.5)
    return replace(item, current_replicas=current, ready_ordinals=ready)


def _without_ordinals(item: Variant) -> Variant:
    return replace(item, ready_ordinals=())


def test_a_variant_without_replicas_keeps_no_ready_ones() -> None:
    """Its message says only that no requests come."""
    (decision,) = decided(replace(numbered(), may_scale_to_zero=True), rates=(0,))

    assert decision.message == "a stays at 0 replicas: no requests come"


POOL = NodePool(
    name="h100", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(0), nodes_addable=9
)
WAITING = variant("big", None, "n1", size=8, serves=1, cost="10", stalled_replicas=1)
OTHER = variant("other", size=8, serves=1, cost="20", accelerator="A100")
OTHER_WAITING = variant("other", None, size=8, serves=1, cost="20", accelerator="L40S", stalled_replicas=1)


def growing(*variants: Variant, rate: float = 1.6) -> Snapshot:
    """Return one model on a full node and a free one of another type; more of the first can be added."""
    nodes = (node("n1", 8), node("a1", 8, accelerator="A100"))
    return Snapshot(nodes=nodes, variants=variants, loads=(load(rate),), pools=(POOL,))


def planned_growing(world: Snapshot) -> tuple[Plan, list[int]]:
    """Return the plan for a growing, and its replicas."""
    made = plan(world, SETTINGS)
    assert made.solver.is_answered, made.solver.message
    return made, [item.replicas for item in made.decisions]


@pytest.mark.parametrize(
    ("variants", "rate", "want"),
    [
        pytest.param((replace(WAITING, stalled_replicas=0), OTHER), 1.6, [2, 0], id="not for long yet"),
        pytest.param((WAITING, OTHER), 1.6, [2, 1], id="another type serves, and they wait"),
        pytest.param((WAITING,), 1.6, [2], id="without another type they wait"),
        pytest.param((WAITING, OTHER_WAITING), 1.6, [2, 1], id="both wait while both lack nodes"),
        pytest.param((WAITING,), 9, [2], id="more of them would wait in vain as well"),
        pytest.param((WAITING,), 0.7, [1], id="they are not needed any more"),
        pytest.param((replace(WAITING, max_replicas=1), OTHER), 1.6, [1, 1], id="their maximum is lower"),
        pytest.param((replace(WAITING, pinned_replicas=1), OTHER), 1.6, [1, 1], id="they are pinned"),
    ],
)
def test_other_variants_serve_while_nodes_do_not_come(
    variants: tuple[Variant, ...], rate: float, want: list[int]
) -> None:
    """Pods that wait are what makes a node autoscaler try again, so they stay as long as they are wanted."""
    made, found = planned_growing(growing(*variants, rate=rate))

    assert found == want
    assert bool(made.requests) is not any(item.stalled_replicas for item in variants)


def test_the_message_says_that_no_node_was_added() -> None:
    """It also gives the missing share."""
    made, _ = planned_growing(growing(WAITING))

    assert made.decisions[0].message.endswith("; 1 replica without a place: no node was added")
    assert made.decisions[0].unmet_per_mille > 0


def test_replicas_that_wait_in_vain_are_replaced_once() -> None:
    """Without a limit on what may be released, existing capacity counts as required, and they are none."""
    endless: ModelLoad = replace(load(1.6), releasable_requests_per_second=None)
    running = replace(OTHER, current_replicas=1)
    world = replace(growing(WAITING, running), loads=(endless,))
    wide = replace(world, nodes=(*world.nodes, node("a2", 8, accelerator="A100")))

    assert planned_growing(wide)[1][1] == 1


def test_the_checker_refuses_nodes_to_come_for_replicas_that_wait_in_vain() -> None:
    """It has the rule from the growing alone."""
    made, _ = planned_growing(growing(replace(WAITING, stalled_replicas=0)))

    assert check(growing(WAITING), made)[0] == "big: may not go to the nodes to be added to h100"
