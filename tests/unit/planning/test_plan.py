"""Plans made by the entry point `plan`: determinism, effects of signals, and fallback plans."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from support.campaign import often
from support.planning_builders import load, node, variant
from support.small_snapshots import small_snapshot

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


def _plan(nodes: list[Node], *variants: Variant, asked: float | None = None) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), variants=variants, loads=(load(asked),)), SETTINGS)


def _replicas(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


def _drawn(seed: int) -> Snapshot:
    """Return a small snapshot, in which loads may grow, requests wait, and nodes of pods are unknown."""
    random = Random(seed)
    given = small_snapshot(random)
    loads = tuple(
        replace(item, backlog_requests=random.choice((0.0, 40.0)), is_growing=random.random() < 0.5)
        for item in given.loads
    )
    variants = tuple(
        replace(item, replicas=tuple(replace(pod, node=pod.node and "gone") for pod in item.replicas))
        if random.random() < 0.1
        else item
        for item in given.variants
    )
    return replace(given, loads=loads, variants=variants)


def test_the_same_input_in_any_order_gives_the_same_plan() -> None:
    """Plans are equal byte for byte, including messages and placements, and the checker accepts them."""
    for seed in (72, 119, 374, 404, *range(often(40))):
        given = _drawn(seed)
        shuffle = Random(seed)
        shuffled = replace(
            given,
            nodes=tuple(shuffle.sample(given.nodes, len(given.nodes))),
            variants=tuple(shuffle.sample(given.variants, len(given.variants))),
            models=tuple(shuffle.sample(given.models, len(given.models))),
            loads=tuple(shuffle.sample(given.loads, len(given.loads))),
        )
        made = plan(given, SETTINGS)

        assert repr(plan(shuffled, SETTINGS)) == repr(made), seed
        assert made.solver.is_answered, (seed, made.solver)
        assert check(given, made) == (), seed
        assert all(decision.message.startswith(decision.name) for decision in made.decisions), seed
        assert made.cost == sum(v.cost_per_replica * _replicas(made)[v.name] for v in given.variants), seed


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


WORLD = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", serves=12_800),), loads=(load(25_000),))


def test_a_minimum_of_several_replicas_is_kept_without_demand() -> None:
    """The load is zero, and minReplicas is 3."""
    idle = variant("a", "n", "n", "n", serves=12_800, min_replicas=3)
    world = Snapshot(nodes=WORLD.nodes, variants=(idle,), loads=(load(0),))
    made = plan(world, Settings())

    assert made.decisions[0].replicas == 3


def test_a_held_plan_is_not_reported_as_solved() -> None:
    """The current replicas are kept, and the message states why."""
    made = hold(WORLD, Settings(), status=SolverStatus.TIMED_OUT, message="it ended")

    assert (made.solver.is_answered, made.solver.gap, made.solver.levels) == (False, 1.0, ())
    assert made.decisions[0].replicas == 1
    assert made.decisions[0].message == "a stays at 1 replica: it ended"


def test_decisions_have_error_details_only_if_names_all_is_set() -> None:
    """Details may name workloads of other namespaces; the message of the solver always has them."""
    detail = "refused: other/b may not go to node n"
    for names_all, want in ((False, "refused"), (True, detail)):
        settings = Settings(names_all=names_all)
        made = hold(WORLD, settings, status=SolverStatus.FAILED, message="refused", detail=detail)

        assert made.solver.message == detail
        assert made.decisions[0].message == f"a stays at 1 replica: {want}"
