"""Evictions that defragment free accelerators: which pods may be moved, within disruption budgets."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support.campaign import often
from support.planning_builders import load, node, variant

from controller.planning.checker import check
from controller.planning.checker.limits import move_problems
from controller.planning.cluster import MovablePod, Node, Quota
from controller.planning.decision import Move, Plan
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot, Variant

KNOWN = 10_000


def owned(name: str, *hosts: str, **changes: Any) -> Variant:
    """Return a variant of a model of the same name, with four accelerators per replica."""
    fields: dict[str, Any] = {"size": 4, "model_id": name, "serves": KNOWN, "may_scale_to_zero": True}
    return variant(name, *hosts, **fields | changes)


def other(name: str, **changes: Any) -> MovablePod:
    """Return a pod of another workload, with four accelerators."""
    return MovablePod(**dict[str, Any](namespace="jobs", name=name, accelerators=4) | changes)


LARGE = owned("large", size=8)
PAIR = (owned("x", "n1"), owned("y", "n2"))
NODES = (node("n1", 8), node("n2", 8))
HELD = (node("n1", 8, used=4, movable=(other("job"),)), node("n2", 8))


def world(nodes: tuple[Node, ...], *variants: Variant, **changes: Any) -> Snapshot:
    """Return a snapshot in which each model requires what it runs, but at least one replica."""
    wanted = {item.model_id: max(1, item.current_replicas) for item in variants}
    loads = tuple(load(count * KNOWN * 0.8, model) for model, count in wanted.items())
    return Snapshot(nodes=nodes, variants=variants, loads=loads, **changes)


def planned(snapshot: Snapshot, most: int = 4) -> Plan:
    """Return the plan; a plan that the checker rejects has no moves."""
    return plan(snapshot, Settings(most_moves=most, relief_solves=0))


def limited(item: Variant, allowed: int, budget: str = "") -> Variant:
    """Return a variant under a disruption budget."""
    return replace(item, evictable_replicas=allowed, disruption_budget=budget)


MOVED: dict[str, tuple[Snapshot, list[str]]] = {
    "one of two replicas moves to the other node": (world(NODES, *PAIR, LARGE), ["x"]),
    "no replica whose disruption budget allows no eviction": (
        world(NODES, limited(PAIR[0], 0), PAIR[1], LARGE),
        ["y"],
    ),
    "nothing if no disruption budget allows an eviction": (
        world(NODES, *(limited(v, 0) for v in PAIR), LARGE),
        [],
    ),
    "as many as a shared disruption budget allows": (
        world(NODES, *(limited(v, 1, "all") for v in PAIR), LARGE),
        ["x"],
    ),
    "one of two if a shared disruption budget allows one": (
        world(
            tuple(node(f"n{i}", 8) for i in range(4)),
            *(limited(owned(f"v{i}", f"n{i}"), 1, "all") for i in range(4)),
            LARGE,
            owned("huge", size=8),
        ),
        ["v0"],
    ),
    "one of two on different types of nodes under a shared disruption budget": (
        world(
            (*NODES, node("m1", 8, accelerator="A100"), node("m2", 8, accelerator="A100")),
            *(limited(v, 1, "all") for v in PAIR),
            *(
                limited(owned(name, host, accelerator="A100"), 1, "all")
                for name, host in (("z1", "m1"), ("z2", "m2"))
            ),
            LARGE,
            owned("huge", size=8, accelerator="A100"),
        ),
        ["z1"],
    ),
    "no replica that must not be preempted": (
        world(NODES, replace(PAIR[0], may_be_preempted=False), PAIR[1], LARGE),
        ["y"],
    ),
    "no replica of a pinned variant": (
        world(NODES, replace(PAIR[0], pinned_replicas=1), PAIR[1], LARGE),
        ["y"],
    ),
    "no replica of a paused variant": (world(NODES, replace(PAIR[0], is_paused=True), PAIR[1], LARGE), ["y"]),
    "nothing for a variant whose quota is used up": (
        world(NODES, *PAIR, LARGE, quotas=(Quota(name="q", namespace="llm", accelerators=8),)),
        [],
    ),
    "replicas rather than pods of other workloads": (world(HELD, PAIR[1], LARGE), ["y"]),
    "a pod of another workload if replicas must not move": (
        world(HELD, replace(PAIR[1], may_be_preempted=False), LARGE),
        ["job"],
    ),
    "no pod of another workload whose disruption budget allows no eviction": (
        world(
            (replace(HELD[0], movable=(other("job", evictable=0, disruption_budget="b"),)), HELD[1]),
            replace(PAIR[1], may_be_preempted=False),
            LARGE,
        ),
        [],
    ),
    "no pod of another workload that is restricted to some nodes": (
        world(
            (replace(HELD[0], movable=(other("job", node_selector=frozenset({("a", "b")})),)), HELD[1]),
            replace(PAIR[1], may_be_preempted=False),
            LARGE,
        ),
        [],
    ),
    "no pod of another workload whose size does not divide the others": (
        world(
            (node("n1", 8, used=3, movable=(other("job", accelerators=3),)), HELD[1]),
            replace(PAIR[1], may_be_preempted=False),
            LARGE,
        ),
        [],
    ),
    "the cheapest pod of another workload": (
        world(
            (
                node("n1", 8, used=4, movable=(other("dear", price_class=3),)),
                node("n2", 8, used=4, movable=(other("cheap", price_class=1),)),
            ),
            LARGE,
        ),
        ["cheap"],
    ),
}


@pytest.mark.parametrize("sentence", MOVED)
def test_only_pods_that_may_be_moved_are_moved(sentence: str) -> None:
    """Each move names the model that gets room by it."""
    snapshot, expected = MOVED[sentence]

    made = planned(snapshot)

    assert [move.name for move in made.moves] == expected, made.solver.message
    assert all(move.benefits in {(("llm", "large"),), (("llm", "huge"),)} for move in made.moves)


@pytest.mark.parametrize("block", range(4))
def test_no_disruption_budget_is_exceeded_and_moved_pods_have_room(block: int) -> None:
    """On random fragmented clusters; the checker does not look for other places of moved pods."""
    moves = 0
    for seed in range(block, often(100), 4):
        snapshot = _drawn(Random(seed))
        made = planned(snapshot, most=9)
        moves += len(made.moves)

        assert check(snapshot, made) == ()
        assert _fits(snapshot, made), seed
    assert moves


def _drawn(random: Random) -> Snapshot:
    nodes, variants = [], []
    count = random.randint(3, 6)
    for i in range(count):
        pods = tuple(
            other(f"j{i}-{k}", accelerators=random.choice((1, 2, 4)), **_budget(random, "evictable"))
            for k in range(random.randint(0, 1))
        )
        nodes.append(node(f"n{i}", 8, used=sum(pod.accelerators for pod in pods), movable=pods))
    for i in range(count):
        hosts = [f"n{i}"] * random.randint(0, 2)
        size = random.choice((1, 2))
        budget = _budget(random, "evictable_replicas")
        variants.append(owned(f"v{i}", *hosts, size=size, **budget))
    large = owned("large", size=8, max_replicas=2)
    return world(tuple(nodes), *variants, large)


def _budget(random: Random, name: str) -> dict[str, Any]:
    budget = random.choice(("", "one", "two"))
    return {"disruption_budget": budget, name: {"": None, "one": 1, "two": 2}[budget]}


def _fits(snapshot: Snapshot, made: Plan) -> bool:
    """Return whether all evicted pods and one large replica have room, placed largest first."""
    if not made.moves:
        return True
    sizes = {(v.namespace, v.name): v.accelerators_per_replica for v in snapshot.variants}
    sizes |= {(p.namespace, p.name): p.accelerators for n in snapshot.nodes for p in n.movable}
    free = {n.name: n.accelerators_allocatable - n.accelerators_used_by_others for n in snapshot.nodes}
    granted = {(d.namespace, d.name): d.replicas for d in made.decisions}
    for item in snapshot.variants:
        for replica in item.replicas[max(0, len(item.replicas) - granted[item.key]) :]:
            free[replica.node or ""] -= item.accelerators_per_replica
    for place in made.placements:
        free[place.node] -= place.pods * sizes[place.namespace, place.name]
    unplaced = [8]
    for move in made.moves:
        free[move.node] += move.replicas * sizes[move.namespace, move.name]
        unplaced += [sizes[move.namespace, move.name]] * move.replicas
    for size in sorted(unplaced, reverse=True):
        rooms = [name for name, room in free.items() if room >= size]
        if not rooms:
            return False
        free[min(rooms, key=lambda name: free[name])] -= size
    return True


WRONG: dict[str, tuple[Snapshot, Move, str]] = {
    "more replicas than there are": (
        world(NODES, *PAIR, LARGE),
        Move(namespace="llm", name="x", node="n1", replicas=2, benefits=(("llm", "large"),)),
        "x: there are no 2 to be evicted from node n1",
    ),
    "a replica that must not be preempted": (
        world(NODES, replace(PAIR[0], may_be_preempted=False), LARGE),
        Move(namespace="llm", name="x", node="n1", replicas=1, benefits=(("llm", "large"),)),
        "x: must not be moved",
    ),
    "a replica of a pinned variant": (
        world(NODES, replace(PAIR[0], pinned_replicas=1), LARGE),
        Move(namespace="llm", name="x", node="n1", replicas=1, benefits=(("llm", "large"),)),
        "x: must not be moved",
    ),
    "more evictions than a disruption budget allows": (
        world(NODES, limited(PAIR[0], 0, "b"), LARGE),
        Move(namespace="llm", name="x", node="n1", replicas=1, benefits=(("llm", "large"),)),
        "disruption budget llm/b: 1 evictions, 0 allowed",
    ),
    "a pod that is not listed as movable": (
        world(HELD, LARGE),
        Move(
            namespace="jobs", name="own", node="n1", replicas=1, is_other=True, benefits=(("llm", "large"),)
        ),
        "own: there are no 1 to be evicted from node n1",
    ),
    "without a beneficiary": (
        world(NODES, *PAIR),
        Move(namespace="llm", name="x", node="n1", replicas=1),
        "x: no variant gains room by this move",
    ),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_the_checker_rejects_an_invalid_move(sentence: str) -> None:
    """A plan with such a move is not applied."""
    snapshot, move, complaint = WRONG[sentence]

    wrong = replace(planned(snapshot, most=0), moves=(move,))

    assert [*move_problems(snapshot, wrong)] == [complaint]


@pytest.mark.parametrize(
    ("allowed", "moved"),
    [
        pytest.param(1, 0, id="preemption uses up the budget"),
        pytest.param(2, 1, id="the budget has one disruption left for an eviction"),
    ],
)
def test_preemptions_and_evictions_share_a_disruption_budget(allowed: int, moved: int) -> None:
    """A replica preempted for a higher priority counts as much as an evicted one."""
    high = owned("high", size=8, accelerator="A100", priority=1)
    low = limited(owned("low", "m1", size=8, accelerator="A100", priority=50), allowed, "all")
    snapshot = world(
        (*NODES, node("m1", 8, accelerator="A100")),
        *(limited(item, allowed, "all") for item in PAIR),
        LARGE,
        high,
        low,
    )

    made = planned(snapshot)

    replicas = {item.name: item.replicas for item in made.decisions}
    assert (replicas["high"], replicas["low"]) == (1, 0)
    assert sum(move.replicas for move in made.moves) == moved
    assert check(snapshot, made) == ()


def test_the_checker_counts_stopped_replicas_in_addition_to_evictions() -> None:
    """The budget would allow the eviction alone."""
    low = limited(owned("low", "m1", size=8, accelerator="A100", priority=50), 2, "all")
    high = owned("high", size=8, accelerator="A100", priority=1)
    pair = [limited(item, 2, "all") for item in PAIR]
    snapshot = world((*NODES, node("m1", 8, accelerator="A100")), *pair, LARGE, high, low)
    made = planned(snapshot)
    smaller = replace(
        snapshot,
        variants=tuple(replace(v, evictable_replicas=v.evictable_replicas and 1) for v in snapshot.variants),
    )

    assert [*move_problems(smaller, made)] == [
        "disruption budget llm/all: 1 evictions beside 1 stopped, 1 allowed"
    ]
