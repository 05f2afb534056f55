"""Reliefs of shortages: each claim is compared with the plan made after that change."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from support.campaign import often
from support.planning_builders import load, node, variant
from support.small_snapshots import constrained_snapshot, small_snapshot

from controller.commands.plan.changes import Changes, apply_changes
from controller.planning.cluster import Budget, Quota
from controller.planning.decision import BoundBy, Plan, Relief, ReliefKind, VariantDecision
from controller.planning.inputs import PlanningInputs, Settings
from controller.planning.inventory import NodeAddition
from controller.planning.plan import plan
from controller.planning.snapshot import Replica, Snapshot, Variant

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Random], Snapshot]


def limited_snapshot(random: Random) -> Snapshot:
    """Return a small snapshot with a quota and a budget as its limits, and without `maxReplicas`."""
    world = small_snapshot(random)
    return replace(
        world,
        variants=tuple(replace(item, max_replicas=None) for item in world.variants),
        quotas=(Quota(name="q", namespace="llm", accelerators=random.randint(0, 8)),),
        budgets=(
            Budget(
                name="b",
                cost_per_hour=Decimal(random.randint(1, 40)),
                is_strict=random.random() < 0.5,
            ),
        ),
    )


MAKERS: dict[str, tuple[Make, set[ReliefKind]]] = {
    "small": (small_snapshot, {ReliefKind.NODE, ReliefKind.MAX_REPLICAS, ReliefKind.PRIORITY}),
    "constrained": (constrained_snapshot, {ReliefKind.NODE, ReliefKind.MAX_REPLICAS}),
    "limited": (limited_snapshot, {ReliefKind.QUOTA, ReliefKind.BUDGET, ReliefKind.PRIORITY}),
}
SETTINGS = Settings(wall_seconds=60.0)
MANY = tuple(
    variant(f"v{number:02}", model_id=f"m{number:02}", size=4, serves=12_800, priority=5)
    for number in range(80)
)
"""Models that are all short of H100 nodes; in so large a fleet few changes are tried."""
NODE = re.compile(r"\+(?P<nodes>\d+) free (?P<size>\d+)-accelerator (?P<type>\S+) nodes?")
LIMIT = re.compile(r"(?:quota|budget) (?P<name>\S+) raised to (?P<amount>[\d.]+) ")
MAXIMUM = re.compile(r"maxReplicas of (?P<name>\S+) raised to (?P<maximum>\d+)")
ENABLED = re.compile(r"an enabled autoscaler of (?P<name>\S+)")
EXPENSE = re.compile(r" at the expense of (?P<losers>\d+) other models?")
PRIORITY = re.compile(r"priority (?P<priority>\d+) ")


def _made(snapshot: Snapshot, relief: Relief, decision: VariantDecision) -> Snapshot:
    """Return the snapshot after the change that a relief proposes, parsed from its text."""
    own = (decision.namespace, decision.model_id)
    if found := NODE.match(relief.text):
        size, nodes = int(found["size"]), int(found["nodes"])
        more = NodeAddition(accelerator=found["type"], accelerators=size, nodes=nodes)
        asked = PlanningInputs(snapshot=snapshot, settings=SETTINGS)
        return apply_changes(asked, Changes(additions=(more,)))[0].snapshot
    if found := LIMIT.match(relief.text):
        name, amount = found["name"], Decimal(found["amount"])
        quotas = (
            replace(q, accelerators=int(amount)) if f"{q.namespace}/{q.name}" == name else q
            for q in snapshot.quotas
        )
        budgets = (replace(b, cost_per_hour=amount) if b.name == name else b for b in snapshot.budgets)
        return replace(snapshot, quotas=tuple(quotas), budgets=tuple(budgets))
    if found := MAXIMUM.match(relief.text) or ENABLED.match(relief.text):
        maximum = {(decision.namespace, found["name"]): int(found.groupdict().get("maximum", "1"))}
        variants = (replace(v, max_replicas=maximum.get(v.key, v.max_replicas)) for v in snapshot.variants)
        return replace(snapshot, variants=tuple(variants))
    found = PRIORITY.match(relief.text)
    assert found, relief.text
    better = {own: int(found["priority"])}
    variants = (
        replace(v, priority=better.get((v.namespace, v.model_id), v.priority)) for v in snapshot.variants
    )
    return replace(snapshot, variants=tuple(variants))


def _unmet(made: Plan) -> dict[tuple[str, str], int]:
    return {(d.namespace, d.model_id): d.unmet_per_mille for d in made.decisions}


@pytest.mark.parametrize(("make", "kinds"), MAKERS.values(), ids=MAKERS)
def test_each_relief_has_the_stated_effect(make: Make, kinds: set[ReliefKind]) -> None:
    """The shortfall is exactly the stated one."""
    seen = Counter[ReliefKind]()
    for seed in range(often(60)):
        snapshot = make(Random(seed))
        made = plan(snapshot, SETTINGS)
        claims = {(d.model_id, r): d for d in made.decisions for r in d.reliefs}
        for (_, relief), decision in claims.items():
            if relief.kind is ReliefKind.MOVES:
                continue
            after = _made(snapshot, relief, decision)
            then = plan(after, replace(SETTINGS, relief_solves=0))
            told = (seed, decision.name, relief)
            assert _unmet(then)[decision.namespace, decision.model_id] == relief.unmet_per_mille, told
            seen[relief.kind] += 1
    assert kinds <= {*seen}


def test_the_relief_for_a_replica_of_two_pods_is_two_nodes() -> None:
    """One node would not help, and the cause is the number of accelerators, not the topology."""
    nodes = (node("n0", 8), node("n1", 8))
    first = Replica(name="g", node="n0", further_nodes=("n1",), ready=True, report_age_seconds=5.0)
    gang = replace(
        variant("gang", size=16, pods_per_replica=2, serves=1e6), replicas=(first,), current_replicas=1
    )
    made = plan(Snapshot(nodes=nodes, variants=(gang,), loads=(load(1.6e6),)), SETTINGS)
    (decision,) = made.decisions

    assert (decision.replicas, decision.bound_by) == (1, BoundBy.ACCELERATORS)
    assert [relief.text for relief in decision.reliefs] == ["+2 free 8-accelerator H100 nodes"]


def _reliefs(*more: Variant, **rates: float) -> dict[str, set[ReliefKind]]:
    """Return the kinds of reliefs of the models of some variants, in a fleet that is short."""
    loads = tuple(load(rates.get(item.model_id, 25_000), item.model_id) for item in (*MANY, *more))
    snapshot = Snapshot(nodes=(node("n1", 8), node("n2", 8)), variants=(*MANY, *more), loads=loads)
    made = plan(snapshot, SETTINGS)
    return {item.model_id: {relief.kind for relief in item.reliefs} for item in made.decisions}


def test_the_most_important_short_model_has_a_relief_in_a_large_fleet() -> None:
    """A node would help many others, but not this one, which has reached its maximum."""
    important = variant("important", model_id="important", serves=12_800, priority=1, max_replicas=1)

    assert _reliefs(important)["important"] == {ReliefKind.MAX_REPLICAS}


def test_of_two_equally_important_models_the_shorter_one_has_a_relief() -> None:
    """Only one change of a maximum is tried, because the first one helps."""
    limited: dict[str, Any] = {"size": 0, "serves": 12_800, "priority": 1, "max_replicas": 1}
    some, most = variant("a", model_id="a", **limited), variant("b", model_id="b", **limited)

    found = _reliefs(some, most, a=12_000, b=90_000)

    assert (found["a"], found["b"]) == (set(), {ReliefKind.MAX_REPLICAS})
