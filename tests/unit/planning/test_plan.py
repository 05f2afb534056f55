"""Plans made by the entry point `plan`: determinism, effects of signals, and fallback plans."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.planning_builders import capacity, load, node, variant

from controller.planning.assemble import hold
from controller.planning.checker import check
from controller.planning.decision import BoundBy, NodePlacement, Reason, SolverStatus
from controller.planning.inputs import Settings
from controller.planning.load import RATE_UNIT, Signal
from controller.planning.plan import plan
from controller.planning.snapshot import Replica, Snapshot

if TYPE_CHECKING:
    from controller.planning.cluster import Node
    from controller.planning.decision import Plan
    from controller.planning.load import ModelLoad
    from controller.planning.snapshot import Variant

SETTINGS = Settings()
TYPES = ("H100", "L40S")
SIGNALS = (Signal.FRESH, Signal.FRESH, Signal.FRESH, Signal.QUORUM, Signal.HELD, Signal.UNKNOWN)


def _plan(nodes: list[Node], *variants: Variant, asked: float | None = None) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), variants=variants, loads=(load(asked),)), SETTINGS)


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
        is_growing=draw(st.booleans()),
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
    """Plans and states are equal byte for byte, including messages and placements."""
    shuffled = Snapshot(
        nodes=tuple(data.draw(st.permutations(snapshot.nodes))),
        variants=tuple(data.draw(st.permutations(snapshot.variants))),
        loads=tuple(data.draw(st.permutations(snapshot.loads))),
    )

    assert repr(plan(shuffled, SETTINGS)) == repr(plan(snapshot, SETTINGS))


@given(snapshot=_snapshots())
@settings(max_examples=often(50), deadline=None)
def test_every_snapshot_gets_a_plan_that_passes_the_checker(snapshot: Snapshot) -> None:
    """Even an inconsistent snapshot gets a solved plan with a message for each decision."""
    made = plan(snapshot, SETTINGS)

    assert made.solver.status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE), made.solver
    assert check(snapshot, made) == ()
    assert all(decision.message.startswith(decision.name) for decision in made.decisions)
    assert made.cost == sum(v.cost_per_replica * _replicas(made)[v.name] for v in snapshot.variants)
    assert plan(snapshot, SETTINGS).solver.status is not SolverStatus.FAILED


def test_a_variant_without_cost_and_without_room_gets_a_plan() -> None:
    """Reliefs are searched in a problem whose cost is zero, so that each gap relative to it is zero, too."""
    pods = (
        Replica(name="v-0", node=None, ready=False),
        Replica(name="v-1", node="n", ready=False),
    )
    free = variant("v", size=1, cost="0", serves=12_800, current_replicas=1, replicas=pods)

    made = _plan([node("n", 0)], free)

    assert made.solver.status is SolverStatus.OPTIMAL
    assert made.cost == 0


def test_a_large_load_adds_several_replicas_at_once() -> None:
    """One plan adds all ten replicas that the load requires."""
    made = _plan([node("n1", 16)], variant("a", "n1", serves=12_800), asked=115_000)

    assert _replicas(made) == {"a": 11}


def test_load_that_existing_replicas_cannot_serve_is_no_shortfall_of_the_plan() -> None:
    """No plan avoids it while replicas start; what is lost of existing ones counts."""
    one = variant("a", "n1", serves=12_800)
    grown = _plan([node("n1", 16)], one, asked=115_000)
    first = variant("b", model_id="first", serves=12_800, priority=1)
    loads = (load(115_000), load(12_800, "first"))
    taken = plan(Snapshot(nodes=(node("n1", 1),), variants=(one, first), loads=loads), SETTINGS)

    assert {report.level: (report.value, report.bound) for report in grown.solver.levels}[
        "load of priority 100"
    ] == (0, 0)
    assert _replicas(taken) == {"a": 0, "b": 1}
    levels = {report.level: report.value for report in taken.solver.levels}
    short, lost = 1000, 117  # per mille; 12,800 of 0.95 x 115,000 requests/s were served
    assert levels["load of priority 100"] == 1000 * (9 * short + lost)


LITTLE, MUCH = 3_000, 60_000
SIGNALLED = {
    "fresh reports scale down": (Signal.FRESH, LITTLE, 1),
    "fresh reports scale up": (Signal.FRESH, MUCH, 6),
    "a quorum scales down": (Signal.QUORUM, LITTLE, 1),
    "a quorum scales up": (Signal.QUORUM, MUCH, 6),
    "held reports do not scale down": (Signal.HELD, LITTLE, 3),
    "held reports scale up": (Signal.HELD, MUCH, 6),
    "an unknown load keeps all replicas": (Signal.UNKNOWN, None, 3),
}


@pytest.mark.parametrize(("signal", "asked", "want"), SIGNALLED.values(), ids=SIGNALLED.keys())
def test_the_signal_decides_whether_replicas_may_be_added_or_removed(
    signal: Signal, asked: int | None, want: int
) -> None:
    """Three replicas run, each serving 12,800: the load requires 1 or, at 70,589, 6."""
    running = variant("a", "n", "n", "n", serves=12_800)
    world = Snapshot(nodes=(node("n", 8),), variants=(running,), loads=(load(asked, signal=signal),))

    assert _replicas(plan(world, SETTINGS)) == {"a": want}


UNMEASURED = {
    "kept while their model has load": (load(30_000), {"a": 3, "chat": 0}),
    "kept while the releasable rate is unknown": (
        load(0, releasable_requests_per_second=None),
        {"a": 3, "chat": 0},
    ),
    "removed if their model has no load": (load(0), {"a": 0, "chat": 1}),
}


@pytest.mark.parametrize(("asked", "want"), UNMEASURED.values(), ids=UNMEASURED.keys())
def test_replicas_of_unknown_capacity_are_removed_only_without_load(
    asked: ModelLoad, want: dict[str, int]
) -> None:
    """Otherwise they may serve all of the load, so not even a higher priority preempts them."""
    running = variant("a", "n", "n", "n")
    chat = variant("chat", model_id="chat", size=8, priority=1, min_replicas=1, max_replicas=1)
    world = Snapshot(nodes=(node("n", 8),), variants=(running, chat), loads=(asked,))

    assert _replicas(plan(world, SETTINGS)) == want


def test_two_variants_share_the_demand_of_their_model() -> None:
    """The demand is met once for the model, not once per variant."""
    h100 = variant("h100", "n1", serves=12_800)
    l40s = variant("l40s", "n2", serves=12_800, accelerator="L40S")

    made = _plan([node("n1", 8), node("n2", 8, accelerator="L40S")], h100, l40s, asked=30_000)

    assert sum(_replicas(made).values()) == 3


def test_proposed_placements_use_the_fullest_nodes_with_room() -> None:
    """This leaves large gaps for large replicas."""
    nodes = [node("n1", 8), node("n2", 8, used=6), node("n3", 8, used=7)]

    made = _plan(nodes, variant("a", "n1", size=2, serves=12_800), asked=25_000)

    assert made.placements == (
        NodePlacement(namespace="llm", name="a", node="n1", pods=1),
        NodePlacement(namespace="llm", name="a", node="n2", pods=1),
    )


def test_nothing_changes_when_the_plan_is_applied_and_load_is_constant() -> None:
    """The second plan has the same replicas of both variants as the first."""
    nodes = [node("n1", 8), node("n2", 8, accelerator="L40S")]
    h100: dict[str, Any] = {"cost": "10", "serves": 12_800}
    l40s: dict[str, Any] = {"cost": "9", "serves": 12_800, "accelerator": "L40S"}
    before = _plan(nodes, variant("h100", "n1", **h100), variant("l40s", **l40s), asked=15_000)
    first = _replicas(before)
    after = [
        variant("h100", *["n1"] * first["h100"], **h100),
        variant("l40s", *["n2"] * first["l40s"], **l40s),
    ]

    assert sum(first.values()) == 2
    assert _replicas(_plan(nodes, *after, asked=15_000)) == first


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param((11_000_001,), id="1,320 requests/s"),
        pytest.param((11_000_001, 7_000_003), id="several variants"),
        pytest.param((11_000_000_001, 7_000_000_003), id="two million requests/s"),
        pytest.param((1_100_000_000_001, 700_000_000_003), id="200 million requests/s"),
    ],
)
@pytest.mark.parametrize("dead_band", [(0.88, 1.12), (0.999, 1.001)])
def test_a_load_inside_the_dead_band_changes_no_replicas(
    rates: tuple[int, ...], dead_band: tuple[float, float]
) -> None:
    """However large the load is, rounding makes neither more nor fewer replicas of it."""
    names = [f"n{number:02}" for number in range(31)]
    hosts = [name for name in names[:30] for _ in range(8)][: 240 // len(rates)]
    variants = [variant(f"v{rate}", *hosts, serves=rate) for rate in rates]
    existing = sum(rate * len(hosts) for rate in rates)
    least, most = (existing * edge * RATE_UNIT for edge in dead_band)
    steady = load(existing, required_requests_per_second=least, releasable_requests_per_second=most)
    nodes = tuple(node(name, 8 * len(rates)) for name in names)

    made = plan(Snapshot(nodes=nodes, variants=tuple(variants), loads=(steady,)), SETTINGS)

    assert [item.replicas for item in made.decisions] == [len(hosts)] * len(rates)


@pytest.mark.parametrize(
    ("is_growing", "want"), [(True, {"a100": 1, "l40s": 6}), (False, {"a100": 2, "l40s": 3})]
)
def test_a_model_that_grows_exchanges_none_of_its_replicas(is_growing: bool, want: dict[str, int]) -> None:
    """The cheapest mix for a little more lacks some that are starting, and the next one needs them again."""
    world = Snapshot(
        nodes=(node("n1", 8, accelerator="A100"), node("n2", 8, accelerator="L40S")),
        variants=(
            variant("a100", "n1", cost="2", serves=3, accelerator="A100"),
            variant("l40s", "n2", "n2", cost="1", serves=1, accelerator="L40S", current_replicas=5),
        ),
        loads=(
            load(9, required_requests_per_second=9 * RATE_UNIT, mixes_at_cost=True, is_growing=is_growing),
        ),
    )

    assert _replicas(plan(world, SETTINGS)) == want


def test_a_model_that_grows_releases_what_is_superfluous() -> None:
    """Its load may have grown from next to nothing, and a lower priority's wanted replicas are no more."""
    world = Snapshot(
        nodes=(node("n1", 8, accelerator="L40S"),),
        variants=(variant("l40s", *["n1"] * 8, cost="1", serves=10, accelerator="L40S"),),
        loads=(load(8, required_requests_per_second=8 * RATE_UNIT, is_growing=True),),
    )
    (decision,) = plan(world, SETTINGS).decisions

    assert (decision.replicas, decision.unconstrained_replicas) == (2, 2)


def test_a_replica_that_stays_because_the_load_grows_is_explained() -> None:
    """Without the reason, it would look superfluous."""
    world = Snapshot(
        nodes=(node("n1", 8, accelerator="A100"), node("n2", 8, accelerator="L40S")),
        variants=(
            variant("a100", "n1", "n1", cost="2", serves=10, accelerator="A100"),
            variant("l40s", "n2", cost="1", serves=1, accelerator="L40S"),
        ),
        loads=(
            load(
                19,
                required_requests_per_second=19.5 * RATE_UNIT,
                releasable_requests_per_second=21 * RATE_UNIT,
                mixes_at_cost=True,
                is_growing=True,
            ),
        ),
    )
    decisions = {item.name: item for item in plan(world, SETTINGS).decisions}

    assert decisions["l40s"].replicas == 1
    assert decisions["l40s"].message.endswith("; its replicas stay while the load grows")


def test_a_decision_stays_the_same_until_the_autoscaler_acts() -> None:
    """Planning again, with the decision in the snapshot as desired replicas, gives the same result."""
    waiting = variant("a", "n1", serves=12_800)
    decided = _replicas(_plan([node("n1", 8)], waiting, asked=25_000))["a"]
    after = _plan([node("n1", 8)], replace(waiting, desired_replicas=decided), asked=25_000)

    assert decided == 3
    assert _replicas(after) == {"a": 3}


def test_a_held_plan_keeps_the_current_or_last_decided_replicas() -> None:
    """If the solver fails, a variant keeps its current replicas, or the last decided ones if more."""
    large = variant("b", size=8, model_id="y", current_replicas=1, min_replicas=1, desired_replicas=4)
    given, said = Snapshot(nodes=(node("n2", 8),), variants=(large,)), "the solver gave no answer in time"

    made = hold(given, SETTINGS, status=SolverStatus.TIMED_OUT, message=said)

    assert made.solver.status is SolverStatus.TIMED_OUT
    decision = made.decisions[0]
    assert (decision.replicas, decision.reason, decision.bound_by) == (4, Reason.HOLDING, BoundBy.SOLVER)
    assert decision.message == f"b stays at 4 replicas: {said}"


def test_a_plan_without_solver_effort_is_valid_and_reports_its_bounds() -> None:
    """Without a search the plan passes the checker, and no bound exceeds the value of its level."""
    special = frozenset({("pool", "special")})
    picky = variant("a", size=4, model_id="x", node_selector=special, current_replicas=1, min_replicas=1)
    large = variant("b", size=8, model_id="y", current_replicas=1, min_replicas=1, desired_replicas=4)
    given = Snapshot(nodes=(node("n1", 8, labels=special), node("n2", 8)), variants=(picky, large))

    made = plan(given, Settings(deterministic_seconds=0.0, wall_seconds=0.0))

    assert made.solver.is_answered
    assert check(given, made) == ()
    assert all(level.bound <= level.value for level in made.solver.levels)


def test_an_empty_snapshot_has_an_empty_plan() -> None:
    """A snapshot without variants is not an error."""
    made = plan(Snapshot(nodes=(), variants=()), SETTINGS)

    assert (made.decisions, made.cost) == ((), Decimal(0))
    assert made.solver.status is SolverStatus.OPTIMAL
