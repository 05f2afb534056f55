"""The one entry: from samples to decisions, the same for the same input, never worse than what runs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from campaign import often
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_builders import node, sample, variant

from controller.planning.checker import check
from controller.planning.decision import BoundBy, NodePlacement, Reason, SolverStatus
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot
from controller.planning.state import PlanningState

if TYPE_CHECKING:
    from controller.planning.cluster import Node
    from controller.planning.decision import Plan
    from controller.planning.snapshot import ReplicaSample, Variant

NOTHING, SETTINGS = PlanningState(), Settings()
TYPES = ("H100", "L40S")


def _plan(nodes: list[Node], *variants: Variant, state: PlanningState = NOTHING) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), variants=variants), state, SETTINGS)[0]


def _replicas(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


@st.composite
def _samples(draw: st.DrawFn) -> ReplicaSample | None:
    if draw(st.integers(0, 9)) == 0:
        return None
    return sample(
        draw(st.sampled_from((16_000, 32_000))),
        kv_usage=draw(st.floats(0, 1)),
        waiting=draw(st.sampled_from((0, 0, 3, 40))),
        age_seconds=draw(st.sampled_from((1, 1, 1, 100, 400))),
        avg_input_tokens=draw(st.sampled_from((None, 500.0))),
        avg_output_tokens=draw(st.sampled_from((None, 200.0))),
    )


@st.composite
def _variants(draw: st.DrawFn, index: int, hosts: list[str]) -> Variant:
    pods = draw(st.lists(st.tuples(st.sampled_from((None, *hosts)), st.booleans(), _samples()), max_size=3))
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
        published_capacity_tokens=draw(st.sampled_from((None, 9_000))),
        current_replicas=draw(st.integers(0, 4)),
        replicas=tuple(
            Replica(name=f"v{index}-{i}", node=host, ready=ready and host is not None, sample=report)
            for i, (host, ready, report) in enumerate(sorted(pods, key=lambda pod: pod[0] is not None))
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
        nodes=nodes, variants=tuple(draw(_variants(i, hosts)) for i in range(draw(st.integers(0, 4))))
    )


@given(snapshot=_snapshots(), data=st.data())
@settings(max_examples=often(50), deadline=None)
def test_the_same_input_in_any_order_gives_the_same_plan(snapshot: Snapshot, data: st.DataObject) -> None:
    """Byte for byte, including the sentences, the placements and what is remembered."""
    shuffled = Snapshot(
        nodes=tuple(data.draw(st.permutations(snapshot.nodes))),
        variants=tuple(data.draw(st.permutations(snapshot.variants))),
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
        Replica(name="v-0", node=None, ready=False, sample=sample(16_000, kv_usage=1.0, waiting=3)),
        Replica(name="v-1", node="n", ready=False, sample=None),
    )
    free = variant("v", size=1, cost="0", max_replicas=None, current_replicas=1, replicas=pods)

    made = _plan([node("n", 0)], free)

    assert made.solver.status is SolverStatus.OPTIMAL
    assert made.cost == 0


def test_a_long_queue_adds_several_replicas_at_once() -> None:
    """200 waiting prompts of 500 tokens are many engines' worth: no single steps."""
    full = sample(16_000, in_use=15_000, waiting=200, avg_input_tokens=500.0)

    assert _replicas(_plan([node("n1", 16)], variant("a", "n1", report=full))) == {"a": 11}


def test_two_variants_serve_one_demand_together() -> None:
    """The demand of the model is met once, not once per variant."""
    busy = sample(16_000, in_use=15_000)
    h100, l40s = variant("h100", "n1", report=busy), variant("l40s", "n2", report=busy, accelerator="L40S")

    made = _plan([node("n1", 8), node("n2", 8, accelerator="L40S")], h100, l40s)

    assert sum(_replicas(made).values()) == 3


def test_proposed_places_are_named() -> None:
    """The fullest node with room is proposed, so that large gaps stay large."""
    full = sample(16_000, in_use=15_000, waiting=20, avg_input_tokens=500.0)
    nodes = [node("n1", 8), node("n2", 8, used=6), node("n3", 8, used=7)]

    made = _plan(nodes, variant("a", "n1", size=2, report=full))

    assert made.placements == (
        NodePlacement(namespace="llm", name="a", node="n1", pods=1),
        NodePlacement(namespace="llm", name="a", node="n2", pods=1),
    )


def test_the_next_cycle_is_calm() -> None:
    """When the plan has been carried out and the load is the same, nothing moves."""
    nodes = [node("n1", 8), node("n2", 8, accelerator="L40S")]
    before = variant("h100", "n1", cost="10", report=sample(16_000, in_use=15_000))
    first = _replicas(_plan(nodes, before, variant("l40s", accelerator="L40S", cost="9")))
    share = sample(16_000, in_use=7_500)
    after = [
        variant("h100", *["n1"] * first["h100"], cost="10", report=share),
        variant("l40s", *["n2"] * first["l40s"], cost="9", report=share, accelerator="L40S"),
    ]

    assert sum(first.values()) == 2
    assert _replicas(_plan(nodes, *after)) == first


def test_the_decision_survives_the_time_until_the_autoscaler_acts() -> None:
    """The same snapshot a moment later, with what was decided in it, gives the same answer."""
    full = sample(16_000, in_use=15_000, waiting=20, avg_input_tokens=500.0)
    waiting = variant("a", "n1", report=full)
    decided = _replicas(_plan([node("n1", 8)], waiting))["a"]

    assert decided == 3
    assert _replicas(_plan([node("n1", 8)], replace(waiting, desired_replicas=decided))) == {"a": 3}


def test_a_restart_forgets_nothing_that_matters() -> None:
    """With an empty state the published capacity gives the same replica counts."""
    nodes = [node("n1", 8), node("n2", 8, accelerator="L40S")]
    running = variant("h100", "n1", report=sample(16_000, in_use=15_000), cost="30")
    asleep = variant("l40s", accelerator="L40S", cost="2")
    _, known = plan(
        Snapshot(
            nodes=tuple(nodes),
            variants=(
                replace(
                    asleep,
                    current_replicas=1,
                    replicas=(Replica(name="l40s-0", node="n2", ready=True, sample=sample(8_000)),),
                ),
            ),
        ),
        NOTHING,
        SETTINGS,
    )

    remembered = _plan(nodes, running, asleep, state=known)
    restarted = _plan(nodes, running, replace(asleep, published_capacity_tokens=6_400))

    assert _replicas(remembered) == _replicas(restarted)


def test_without_an_answer_what_runs_stands() -> None:
    """No exception, no zero: the current replicas, or what was decided before if more."""
    special = frozenset({("pool", "special")})
    picky = variant("a", size=4, model_id="x", node_selector=special, current_replicas=1, min_replicas=1)
    large = variant("b", size=8, model_id="y", current_replicas=1, min_replicas=1, desired_replicas=4)
    nodes = (node("n1", 8, labels=special), node("n2", 8))
    no_time = Settings(deterministic_seconds=0.0, wall_seconds=0.0)

    made, _ = plan(Snapshot(nodes=nodes, variants=(picky, large)), NOTHING, no_time)

    assert made.solver.status is SolverStatus.TIMED_OUT
    decision = made.decisions[1]
    assert (decision.replicas, decision.reason, decision.bound_by) == (4, Reason.HOLDING, BoundBy.SOLVER)
    assert (
        decision.message == "b stays at 4 replicas: the replicas that were chosen could not be placed in time"
    )


def test_numbers_beyond_exactness_hold_the_plan() -> None:
    """One absurd variant is named, and nobody is scaled on inexact sums."""
    absurd = variant("a", cost="1000000", current_replicas=900_000)

    made = _plan([], absurd)

    assert made.solver.status is SolverStatus.FAILED
    assert made.solver.message.startswith("llm/a: the cost of up to 900000 replicas")
    assert _replicas(made) == {"a": 900_000}


def test_an_empty_world_has_an_empty_plan() -> None:
    """Nothing to decide is not an error."""
    made, state = plan(Snapshot(nodes=(), variants=()), NOTHING, SETTINGS)

    assert (made.decisions, made.cost, state) == ((), Decimal(0), NOTHING)
    assert made.solver.status is SolverStatus.OPTIMAL
