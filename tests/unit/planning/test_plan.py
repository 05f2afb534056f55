"""The one entry: from loads to decisions, the same for the same input, never worse than what runs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_builders import capacity, load, node, variant
from support.campaign import often

from controller.planning.checker import check
from controller.planning.decision import BoundBy, NodePlacement, Reason, SolverStatus
from controller.planning.hold import hold
from controller.planning.load import Signal
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot
from controller.planning.state import PlanningState

if TYPE_CHECKING:
    from controller.planning.cluster import Node
    from controller.planning.decision import Plan
    from controller.planning.load import ModelLoad
    from controller.planning.snapshot import Variant

NOTHING, SETTINGS = PlanningState(), Settings()
TYPES = ("H100", "L40S")
SIGNALS = (Signal.FRESH, Signal.FRESH, Signal.FRESH, Signal.QUORUM, Signal.HELD, Signal.UNKNOWN)


def _plan(nodes: list[Node], *variants: Variant, asked: float | None = None) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), variants=variants, loads=(load(asked),)), NOTHING, SETTINGS)[0]


def _replicas(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


@st.composite
def _loads(draw: st.DrawFn, model: str) -> ModelLoad:
    signal, silent = draw(st.sampled_from(SIGNALS)), draw(st.integers(0, 1))
    if signal is Signal.UNKNOWN:
        return load(None, model, silent_replicas=silent)
    found = load(
        draw(st.floats(0, 90_000)),
        model,
        signal=signal,
        silent_replicas=silent,
        start_seconds=draw(st.sampled_from((0.0, 140.0))),
        backlog_requests=draw(st.sampled_from((0.0, 0.0, 40.0))),
    )
    bounds = (found.releasable_requests_per_second, found.required_requests_per_second, None)
    return replace(found, releasable_requests_per_second=draw(st.sampled_from(bounds)))


@st.composite
def _variants(draw: st.DrawFn, index: int, hosts: list[str]) -> Variant:
    pods = draw(st.lists(st.tuples(st.sampled_from((None, *hosts)), st.booleans()), max_size=3))
    rate = draw(st.sampled_from((None, 0, 9_000, 12_800, 25_600)))
    minimum = draw(st.sampled_from((0, 0, 1)))
    return variant(
        f"v{index}",
        model_id=draw(st.sampled_from(("x", "y"))),
        size=draw(st.sampled_from((0, 1, 2, 3, 4, 8))),
        cost=draw(st.sampled_from(("0", "1", "9.99", "250"))),
        accelerator=draw(st.sampled_from((*TYPES, ""))),
        priority=draw(st.sampled_from((1, 50, 100))),
        min_replicas=minimum,
        max_replicas=draw(st.sampled_from((None, minimum, 4))),
        may_scale_to_zero=draw(st.booleans()),
        desired_replicas=draw(st.sampled_from((None, 0, 5))),
        capacity=None if rate is None else capacity(rate),
        start_seconds=draw(st.sampled_from((0.0, 140.0))),
        current_replicas=draw(st.integers(0, 4)),
        replicas=tuple(
            Replica(name=f"v{index}-{i}", node=host, ready=ready and host is not None)
            for i, (host, ready) in enumerate(sorted(pods, key=lambda pod: pod[0] is not None))
        ),
    )


@st.composite
def _snapshots(draw: st.DrawFn) -> Snapshot:
    nodes = tuple(
        node(
            f"n{i}",
            draw(st.sampled_from((0, 4, 8))),
            accelerator=draw(st.sampled_from(TYPES)),
            used=draw(st.integers(0, 5)),
            schedulable=draw(st.booleans()),
        )
        for i in range(draw(st.integers(0, 3)))
    )
    hosts = [*(n.name for n in nodes), "gone"]
    return Snapshot(
        nodes=nodes,
        variants=tuple(draw(_variants(i, hosts)) for i in range(draw(st.integers(0, 4)))),
        loads=tuple(draw(_loads(model)) for model in draw(st.sampled_from(("", "x", "xy", "xy", "xy")))),
    )


@given(snapshot=_snapshots(), data=st.data())
@settings(max_examples=often(50), deadline=None)
def test_the_same_input_in_any_order_gives_the_same_plan(snapshot: Snapshot, data: st.DataObject) -> None:
    """Byte for byte, including the sentences, the placements and what is remembered."""
    shuffled = Snapshot(
        nodes=tuple(data.draw(st.permutations(snapshot.nodes))),
        variants=tuple(data.draw(st.permutations(snapshot.variants))),
        loads=tuple(data.draw(st.permutations(snapshot.loads))),
    )

    assert repr(plan(shuffled, NOTHING, SETTINGS)) == repr(plan(snapshot, NOTHING, SETTINGS))


@given(snapshot=_snapshots())
@settings(max_examples=often(50), deadline=None)
def test_every_world_gets_a_plan_that_passes_the_checker(snapshot: Snapshot) -> None:
    """However broken the world is, there is an answer, it was accepted, and every decision has a sentence."""
    made, state = plan(snapshot, NOTHING, SETTINGS)

    assert made.solver.status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE), made.solver
    assert check(snapshot, made) == ()
    assert all(decision.message.startswith(decision.name) for decision in made.decisions)
    assert made.cost == sum(v.cost_per_replica * _replicas(made)[v.name] for v in snapshot.variants)
    assert plan(snapshot, state, SETTINGS)[0].solver.status is not SolverStatus.FAILED


def test_what_costs_nothing_and_finds_no_room_has_a_plan() -> None:
    """What would help is asked of a problem whose cost, and so whose every distance from it, is zero."""
    pods = (
        Replica(name="v-0", node=None, ready=False),
        Replica(name="v-1", node="n", ready=False),
    )
    free = variant("v", size=1, cost="0", serves=12_800, current_replicas=1, replicas=pods)

    made = _plan([node("n", 0)], free)

    assert made.solver.status is SolverStatus.OPTIMAL
    assert made.cost == 0


def test_a_large_load_adds_several_replicas_at_once() -> None:
    """It is many engines' worth: no single steps."""
    made = _plan([node("n1", 16)], variant("a", "n1", serves=12_800), asked=115_000)

    assert _replicas(made) == {"a": 11}


LITTLE, MUCH = 3_000, 60_000
SIGNALLED = {
    "fresh reports scale down": (Signal.FRESH, LITTLE, 1),
    "and up": (Signal.FRESH, MUCH, 6),
    "a quorum scales down": (Signal.QUORUM, LITTLE, 1),
    "and up, too": (Signal.QUORUM, MUCH, 6),
    "held reports don't scale down": (Signal.HELD, LITTLE, 3),
    "but up": (Signal.HELD, MUCH, 6),
    "of what nobody knows all stays": (Signal.UNKNOWN, None, 3),
}


@pytest.mark.parametrize(("signal", "asked", "want"), SIGNALLED.values(), ids=SIGNALLED.keys())
def test_what_may_be_done_depends_on_the_signal(signal: Signal, asked: int | None, want: int) -> None:
    """Three run, each serving 12,800: the load asks for 1 or, at 70,589, for 6."""
    running = variant("a", "n", "n", "n", serves=12_800)
    world = Snapshot(nodes=(node("n", 8),), variants=(running,), loads=(load(asked, signal=signal),))

    assert _replicas(plan(world, NOTHING, SETTINGS)[0]) == {"a": want}


UNMEASURED = {
    "stay while their model is asked for something": (load(30_000), {"a": 3, "chat": 0}),
    "stay while nobody knows what may go": (
        load(0, releasable_requests_per_second=None),
        {"a": 3, "chat": 0},
    ),
    "go where nobody asks for anything": (load(0), {"a": 0, "chat": 1}),
}


@pytest.mark.parametrize(("asked", "want"), UNMEASURED.values(), ids=UNMEASURED.keys())
def test_replicas_of_which_nobody_knows_what_they_serve(asked: ModelLoad, want: dict[str, int]) -> None:
    """Not even a higher priority takes their place: they may serve all of the load."""
    running = variant("a", "n", "n", "n")
    chat = variant("chat", model_id="chat", size=8, priority=1, min_replicas=1, max_replicas=1)
    world = Snapshot(nodes=(node("n", 8),), variants=(running, chat), loads=(asked,))

    assert _replicas(plan(world, NOTHING, SETTINGS)[0]) == want


def test_two_variants_serve_one_demand_together() -> None:
    """The demand of the model is met once, not once per variant."""
    h100 = variant("h100", "n1", serves=12_800)
    l40s = variant("l40s", "n2", serves=12_800, accelerator="L40S")

    made = _plan([node("n1", 8), node("n2", 8, accelerator="L40S")], h100, l40s, asked=30_000)

    assert sum(_replicas(made).values()) == 3


def test_proposed_places_are_named() -> None:
    """The fullest node with room is proposed, so that large gaps stay large."""
    nodes = [node("n1", 8), node("n2", 8, used=6), node("n3", 8, used=7)]

    made = _plan(nodes, variant("a", "n1", size=2, serves=12_800), asked=25_000)

    assert made.placements == (
        NodePlacement(namespace="llm", name="a", node="n1", pods=1),
        NodePlacement(namespace="llm", name="a", node="n2", pods=1),
    )


def test_the_next_cycle_is_calm() -> None:
    """When the plan has been carried out and the load is the same, nothing moves."""
    nodes = [node("n1", 8), node("n2", 8, accelerator="L40S")]
    h100 = {"cost": "10", "serves": 12_800}
    l40s = {"cost": "9", "serves": 12_800, "accelerator": "L40S"}
    before = _plan(nodes, variant("h100", "n1", **h100), variant("l40s", **l40s), asked=15_000)
    first = _replicas(before)
    after = [
        variant("h100", *["n1"] * first["h100"], **h100),
        variant("l40s", *["n2"] * first["l40s"], **l40s),
    ]

    assert sum(first.values()) == 2
    assert _replicas(_plan(nodes, *after, asked=15_000)) == first


def test_the_decision_survives_the_time_until_the_autoscaler_acts() -> None:
    """The same snapshot a moment later, with what was decided in it, gives the same answer."""
    waiting = variant("a", "n1", serves=12_800)
    decided = _replicas(_plan([node("n1", 8)], waiting, asked=25_000))["a"]
    after = _plan([node("n1", 8)], replace(waiting, desired_replicas=decided), asked=25_000)

    assert decided == 3
    assert _replicas(after) == {"a": 3}


def test_without_an_answer_what_runs_stands() -> None:
    """No exception, no zero: the current replicas, or what was decided before if more."""
    large = variant("b", size=8, model_id="y", current_replicas=1, min_replicas=1, desired_replicas=4)
    given, said = Snapshot(nodes=(node("n2", 8),), variants=(large,)), "the solver gave no answer in time"

    made, _ = hold(given, NOTHING, SETTINGS, status=SolverStatus.TIMED_OUT, message=said)

    assert made.solver.status is SolverStatus.TIMED_OUT
    decision = made.decisions[0]
    assert (decision.replicas, decision.reason, decision.bound_by) == (4, Reason.HOLDING, BoundBy.SOLVER)
    assert decision.message == f"b stays at 4 replicas: {said}"


def test_without_any_effort_there_is_a_plan_that_says_how_good_it_is() -> None:
    """Nothing is searched: what is granted has a place, and no bound says that it is the best."""
    special = frozenset({("pool", "special")})
    picky = variant("a", size=4, model_id="x", node_selector=special, current_replicas=1, min_replicas=1)
    large = variant("b", size=8, model_id="y", current_replicas=1, min_replicas=1, desired_replicas=4)
    given = Snapshot(nodes=(node("n1", 8, labels=special), node("n2", 8)), variants=(picky, large))

    made, _ = plan(given, NOTHING, Settings(deterministic_seconds=0.0, wall_seconds=0.0))

    assert made.solver.is_answered
    assert check(given, made) == ()
    assert all(level.bound <= level.value for level in made.solver.levels)


def test_numbers_beyond_exactness_hold_the_plan() -> None:
    """One absurd variant is named, and nobody is scaled on inexact sums."""
    absurd = variant("a", cost="1000000", current_replicas=900_000)

    made = _plan([], absurd)

    assert made.solver.status is SolverStatus.FAILED
    assert made.solver.message.startswith("llm/a: the cost of up to 10000 replicas")
    assert _replicas(made) == {"a": 900_000}


def test_an_empty_world_has_an_empty_plan() -> None:
    """Nothing to decide is not an error."""
    made, state = plan(Snapshot(nodes=(), variants=()), NOTHING, SETTINGS)

    assert (made.decisions, made.cost, state) == ((), Decimal(0), NOTHING)
    assert made.solver.status is SolverStatus.OPTIMAL
