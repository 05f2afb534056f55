"""Plans by other autoscalers' rules: always possible, never better than the best, and said to be theirs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import cast

import pytest
from planning_builders import LIMITS, load, node, variant
from small_problems import is_possible, rank, small_problem
from small_snapshots import small_snapshot
from support.campaign import often

from controller.planning import columns
from controller.planning.checker import check
from controller.planning.cluster import Quota
from controller.planning.decision import Reason, SolverStatus
from controller.planning.plan import plan
from controller.planning.problem import PlacementProblem, Solution
from controller.planning.ruled import fall_back
from controller.planning.settings import Fallback, Settings, Strategy
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from controller.planning.strategies import COUNTS, STRATEGIES

NOTHING = PlanningState()
RULES = [strategy for strategy in Strategy if strategy is not Strategy.OPTIMAL]
WORLD = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", serves=12_800),), loads=(load(25_000),))


def test_every_strategy_can_be_chosen_and_fallen_back_on() -> None:
    """What the settings name is what there is."""
    assert {*RULES} == {*STRATEGIES} == {*COUNTS} == {*Fallback} - {Fallback.HOLD}


@pytest.mark.parametrize("strategy", RULES)
@pytest.mark.parametrize("block", range(2))
def test_the_checker_accepts_what_rules_decide(strategy: Strategy, block: int) -> None:
    """Whatever a rule knows nothing of, the plan is one that can be carried out; nobody had to hold."""
    settings = Settings(strategy=strategy)
    for seed in range(block, often(200), 2):
        world = small_snapshot(Random(seed))
        made, _ = plan(world, NOTHING, settings)
        assert made.solver.strategy == strategy, (seed, made.solver.message)
        assert check(world, made) == (), seed


def test_the_checker_accepts_the_best() -> None:
    """On the same snapshots: pins on old data that find no place, quotas that are exceeded already."""
    for seed in (72, 119, 374, 404, *range(often(20))):
        world = small_snapshot(Random(seed))
        made, _ = plan(world, NOTHING, Settings())
        assert made.solver.strategy == "optimal", (seed, made.solver.message)


@pytest.mark.parametrize("block", range(2))
def test_no_rule_is_better_than_the_best(block: int) -> None:
    """Level by level, on problems with everything in them."""
    for seed in range(block, often(80), 2):
        problem = small_problem(Random(seed))
        none = (0,) * len(problem.growth)
        best = columns.place(problem, limits=LIMITS)
        least = rank(problem, best.replicas, best.added or none)
        for place in STRATEGIES.values():
            ruled = place(problem).replicas
            assert is_possible(problem, ruled, none), seed
            assert rank(problem, ruled, none) >= least, seed


@pytest.mark.parametrize("strategy", RULES)
def test_a_plan_says_whose_it_is_and_claims_nothing(strategy: Strategy) -> None:
    """The name is in the report and in the sentence; nobody knows the gap."""
    made, _ = plan(WORLD, NOTHING, Settings(strategy=strategy))

    assert (made.solver.strategy, made.solver.gap, made.solver.levels) == (strategy, None, ())
    assert made.decisions[0].replicas == 3
    assert made.decisions[0].message.endswith(f"; decided by {strategy}")


@pytest.mark.parametrize("strategy", RULES)
def test_what_a_quota_forbids_is_cut_and_said(strategy: Strategy) -> None:
    """The rule has never heard of quotas."""
    quota = Quota(name="q", namespace="llm", accelerators=2)
    made, _ = plan(replace(WORLD, quotas=(quota,)), NOTHING, Settings(strategy=strategy))

    (decision,) = made.decisions
    assert (decision.replicas, decision.unconstrained_replicas, decision.reason) == (2, 3, Reason.SHORTAGE)
    assert "quota llm/q allows 2 accelerators" in decision.message


def test_a_minimum_of_several_is_kept() -> None:
    """Nothing is in demand, and three are to stay."""
    idle = variant("a", "n", "n", "n", serves=12_800, min_replicas=3)
    world = Snapshot(nodes=WORLD.nodes, variants=(idle,), loads=(load(0),))
    made, _ = plan(world, NOTHING, Settings(strategy=RULES[1]))

    assert (made.decisions[0].replicas, made.decisions[0].reason) == (3, Reason.STEADY)


@pytest.mark.parametrize("fallback", [item for item in Fallback if item is not Fallback.HOLD])
def test_a_rule_decides_where_the_solver_does_not(fallback: Fallback) -> None:
    """The report keeps what became of the solver; the sentence says who decided, and why."""
    made, _ = fall_back(
        WORLD,
        NOTHING,
        Settings(fallback=fallback),
        status=SolverStatus.TIMED_OUT,
        message="the solver gave no answer within 2 s",
    )

    assert (made.solver.status, made.solver.strategy) == (SolverStatus.TIMED_OUT, fallback)
    assert made.solver.is_answered
    assert made.decisions[0].replicas == 3
    assert made.decisions[0].message.endswith(
        f"; {fallback} decided, because the solver gave no answer within 2 s"
    )


def test_where_the_solver_refuses_the_fallback_decides() -> None:
    """Numbers that the solver cannot represent are no hindrance to a rule."""
    absurd = replace(WORLD.variants[0], cost_per_replica=Decimal(10) ** 6, min_replicas=900_000)
    settings = Settings(fallback=Fallback.WVA_COST_AWARE)
    made, _ = plan(replace(WORLD, variants=(absurd,)), NOTHING, settings)

    assert (made.solver.status, made.solver.strategy) == (SolverStatus.FAILED, "wva-cost-aware")
    assert made.decisions[0].replicas == 8


def test_holding_is_no_answer() -> None:
    """What runs stands, and the report says so."""
    made, _ = fall_back(WORLD, NOTHING, Settings(), status=SolverStatus.FAILED, message="it ended")

    assert (made.solver.strategy, made.solver.is_answered, made.decisions[0].replicas) == ("hold", False, 1)


def _broken(_problem: PlacementProblem) -> Solution:
    raise ZeroDivisionError("no replica serves anything")


@pytest.mark.parametrize("fallback", [Fallback.HOLD, Fallback.WVA_COST_AWARE])
def test_what_runs_stands_where_a_rule_breaks(
    fallback: Fallback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The sentence has the error, the log the traceback; as its own fallback it is not tried again."""
    settings = Settings(strategy=Strategy.WVA_COST_AWARE, fallback=fallback)
    monkeypatch.setitem(cast("dict[str, object]", STRATEGIES), "wva-cost-aware", _broken)
    made, _ = plan(WORLD, NOTHING, settings)

    assert (made.solver.strategy, made.solver.status) == ("hold", SolverStatus.FAILED)
    assert made.solver.message == "wva-cost-aware failed: ZeroDivisionError: no replica serves anything"
    assert caplog.text.count("Traceback") == 1


def test_what_runs_stands_where_the_fallback_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both reasons are told."""
    monkeypatch.setitem(cast("dict[str, object]", STRATEGIES), "wva-cost-aware", _broken)
    settings = Settings(fallback=Fallback.WVA_COST_AWARE)

    made, _ = fall_back(WORLD, NOTHING, settings, status=SolverStatus.TIMED_OUT, message="it hung")

    assert (made.solver.strategy, made.solver.status) == ("hold", SolverStatus.TIMED_OUT)
    assert made.solver.message.startswith("it hung; wva-cost-aware failed: ZeroDivisionError")
