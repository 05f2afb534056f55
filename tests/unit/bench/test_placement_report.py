"""Comparisons, goals and tables of the placement benchmark, and its HiGHS model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import compact

from controller.closedloop.scoring import reversals
from controller.planning.cpsat import Effort
from controller.planning.problem import GrowthTerms
from hack.bench.compared import OURS
from hack.bench.goals import Goal
from hack.bench.placement.child import measured
from hack.bench.placement.comparison import Verdict, compared, cost_over_bound_percent, cost_ratio, disproved
from hack.bench.placement.engines import HIGHS
from hack.bench.placement.goals import goals
from hack.bench.placement.highs import TooLargeError, place
from hack.bench.placement.outcome import Bound, Job, Outcome
from hack.bench.placement.report import answers_table, duels_table, failures, goals_table, sequences_table
from hack.fleets.catalogue import RULED, Instance
from hack.fleets.score import Unmet, levels

TIGHT = Instance(family="F4-tight", size=2000, seed=0)
GREEDY = "wva-greedy"


def outcome(
    engine: str, cost: int, *, instance: Instance = TIGHT, missed: int = 0, cpu: float = 1.0
) -> Outcome:
    """Return an outcome with the given cost and shortfall at the second priority."""
    return Outcome(
        instance=instance,
        engine=engine,
        cpu_seconds=(cpu, cpu, cpu),
        wall_seconds=(cpu, cpu, cpu),
        peak_mb=50.0,
        plans=("a", "a", "a"),
        levels={"minimum of priority 0": 0, "demand of priority 1": missed, "cost": cost},
        unmet=(Unmet(priority=1, by_value_percent=missed / 10, by_model_percent=missed / 20, models=1),),
    )


def proven(answer: Outcome, bound: int) -> Outcome:
    """Return the outcome with a bound on its cost."""
    cost = Bound(value=answer.levels["cost"], bound=bound, total=answer.levels["cost"])
    return replace(answer, bounds={"cost": cost})


VERDICTS = {
    "cheaper with equal shortfall": (outcome(OURS, 90), outcome(GREEDY, 100), Verdict.WIN, "cost"),
    "more expensive with less shortfall": (
        outcome(OURS, 300, missed=5),
        outcome(GREEDY, 100, missed=10),
        Verdict.WIN,
        "demand of priority 1",
    ),
    "cheaper with more shortfall": (
        outcome(OURS, 50, missed=6),
        outcome(GREEDY, 100, missed=5),
        Verdict.LOSS,
        "demand of priority 1",
    ),
    "the same": (outcome(OURS, 100), outcome(GREEDY, 100), Verdict.TIE, ""),
}


@pytest.mark.parametrize(("ours", "other", "verdict", "level"), VERDICTS.values(), ids=VERDICTS.keys())
def test_the_first_differing_level_decides_the_comparison(
    ours: Outcome, other: Outcome, verdict: Verdict, level: str
) -> None:
    """Cost is compared only if all shortfalls are equal."""
    found = compared(ours, other)

    assert (found.verdict, found.level) == (verdict, level)


def test_costs_are_compared_only_for_equal_shortfalls() -> None:
    """Otherwise, there is neither a cost ratio nor a distance to the bound."""
    ours = proven(outcome(OURS, 100), 80)
    lazy, dear = outcome(GREEDY, 10, missed=3), outcome(GREEDY, 120)

    assert cost_ratio(lazy, ours) is None
    assert cost_ratio(dear, ours) == pytest.approx(1.2)
    assert cost_over_bound_percent(lazy, [ours]) is None
    assert cost_over_bound_percent(dear, [ours]) == pytest.approx(50)


def test_goals_contain_time_gap_and_comparisons_with_strategies() -> None:
    """The largest gap counts, and every instance in which a strategy is better."""
    outcomes = [
        proven(outcome(OURS, 1000, cpu=0.5), 998),
        outcome(GREEDY, 999),
    ]

    lines = {goal.name: goal.line() for goal in goals(outcomes, slowness=1.0)}

    assert lines["T1_cpu_p95_of_2000"] == "goal: T1_cpu_p95_of_2000 0.50 s, wanted <= 1.5: met"
    assert lines["T1_gap_of_2000"].endswith("0.20 %, wanted <= 0.1: missed")
    assert lines["T8_gap_of_2000"].endswith("wanted <= 0.5: met")
    assert lines["T9_different_answers_to_the_same"].endswith("wanted <= 1: met")
    assert lines["worse_than_a_strategy"] == "goal: worse_than_a_strategy 1.00 instances, wanted <= 0: missed"
    assert "T2_memory_of_10000" not in lines


def test_without_an_outcome_of_ours_the_only_goal_is_to_have_one() -> None:
    """Goals that were not measured are omitted; a failed measurement is a missed goal."""
    broken = Outcome(instance=TIGHT, engine=OURS, failure="why")

    assert goals([outcome(GREEDY, 1)], slowness=1.0) == []
    assert [goal.line() for goal in goals([outcome(GREEDY, 1), broken], slowness=1.0)] == [
        "goal: without_an_answer 1.00 instances, wanted <= 0: missed"
    ]


def test_infeasible_and_differing_answers_miss_their_goals() -> None:
    """They are counted independently of other goals."""
    ours = replace(outcome(OURS, 1), plans=("a", "b"), wrong=("node 3: 1 accelerators too many",))
    lines = {goal.name: goal.is_met for goal in goals([ours], slowness=1.0)}

    assert not lines["impossible_answers"]
    assert not lines["T9_different_answers_to_the_same"]
    assert failures([ours]) == ["wrong: stowplan on F4-tight/2000/0: node 3: 1 accelerators too many"]


def test_the_goals_table_states_by_how_much_goals_are_missed() -> None:
    """It contains the difference in the unit of the goal, and the ratio."""
    found = [
        Goal(name="T1_cpu", value=2.0, unit="s", most=1.5),
        Goal(name="T9_other", value=3, unit="instances", most=0),
        Goal(name="T4_evictions", value=5.0, unit="ms", most=10.0),
    ]

    lines = [" ".join(line.split()) for line in goals_table(found)[1:]]
    assert lines == [
        "T1_cpu 2.00 s 1.5 s missed by 0.50 s, 1.33 times",
        "T9_other 3.00 instances 0 instances missed by 3.00 instances",
        "T4_evictions 5.00 ms 10 ms met, 0.50 times",
    ]


def test_times_are_scaled_to_the_pace_of_the_reference_machine() -> None:
    """A machine that is half as fast may take twice the time."""
    ours = proven(outcome(OURS, 1000, cpu=2.0), 999)
    lines = {goal.name: goal for goal in goals([ours], slowness=2.0)}

    assert lines["T1_cpu_p95_of_2000"].value == 1.0
    assert lines["T8_cpu_of_proof_of_2000"].value == 1.0


def test_a_bound_is_disproved_by_a_better_answer() -> None:
    """For the bound of the cost, only answers with equal shortfalls count."""
    ours = proven(outcome(OURS, 100), 95)

    assert disproved([ours, outcome(GREEDY, 96), outcome(HIGHS, 10, missed=3)]) == []
    assert disproved([ours, outcome(GREEDY, 94)]) == [
        "stowplan on F4-tight/2000/0: cost can't be below 95, yet wva-greedy has 94"
    ]


def test_tables_have_a_line_for_each_engine() -> None:
    """Values are means over seeds; the family is named once."""
    other = replace(TIGHT, seed=1)
    outcomes = [
        proven(outcome(OURS, 100, missed=10), 99),
        proven(outcome(OURS, 100, missed=20, instance=other), 99),
        outcome(GREEDY, 110, missed=10),
    ]
    rows = [line.split() for line in answers_table(outcomes)]
    duels = [line.split() for line in duels_table(outcomes)]

    assert rows[1][:6] == ["F4-tight", "2000", "stowplan", "1.00", "1.00", "50.0"]
    assert rows[1][6:9] == ["0.00", "1.5", "0.75"]
    assert rows[2][0] == GREEDY
    assert duels[1][:5] == [GREEDY, "2000", "1", "0", "0"]


def test_reversals_ignore_steps_without_a_change() -> None:
    """Up, unchanged, down and up are two reversals; repeated growth is none."""
    assert [reversals(course) for course in ((0, 2, 2, 1, 3), (0, 1, 1, 2, 5))] == [2, 0]


def test_the_table_of_sequences_contains_started_and_stopped_accelerators() -> None:
    """They are percentages of those in use; the cost is that of one step in dollars per hour."""
    moved = replace(
        outcome(GREEDY, 8_000_000, instance=replace(TIGHT, family="F13-waves")),
        steps=4,
        used_accelerators=200,
        started_accelerators=20,
        stopped_accelerators=10,
        reversals=6,
    )

    row = sequences_table([moved])[1].split()[3:]
    assert row == ["4", "1000", "2.00", "0", "10.0", "5.00", "6.67", "2.00"]


def job(engine: str, family: str = "F4-tight") -> Job:
    """Return a job with a small fleet."""
    instance = Instance(family=family, size=20, seed=0)
    return Job(instance=instance, engine=engine, seconds=20.0, rounds=2)


def test_a_strategy_is_measured_repeatedly() -> None:
    """Its answers are feasible and equal, and accelerators that it requests without effect are counted."""
    found = measured(job("kthena-expansion"))

    assert found.wrong == ()
    assert len(set(found.plans)) == 1
    assert found.pending_accelerators is not None
    assert found.pending_accelerators > 0
    assert list(found.levels)[-1] == "cost"


def test_highs_proves_an_optimum_that_no_strategy_exceeds() -> None:
    """Its answer is feasible, and its bounds hold at all levels."""
    exact, greedy = measured(job(HIGHS)), measured(job(GREEDY))

    assert exact.wrong == ()
    assert exact.worst_gap_percent == pytest.approx(0, abs=1e-3)
    assert compared(exact, greedy).verdict is Verdict.WIN


@pytest.mark.parametrize("family", ["F3-skew", "F4-tight", "F5-scarce", "F7-huge-models", "F14-ties"])
def test_highs_and_the_compact_formulation_have_equal_optima(family: str) -> None:
    """HiGHS has continuous shortfalls, which are rounded."""
    tried = job(HIGHS, family)
    problem = tried.instance.scenario().problem
    effort = Effort(deterministic_seconds=30.0, wall_seconds=60.0, seed=1)
    oracle = compact.place(problem, effort=effort)

    assert oracle.unproven is None
    assert measured(tried).levels == levels(problem, oracle.replicas)


def test_highs_rejects_problems_that_its_model_cannot_express() -> None:
    """Otherwise, it would return wrong answers to them."""
    families = ("F14-pinned", "F3-skew", *RULED)
    problems = [Instance(family=family, size=20, seed=0).scenario().problem for family in families]
    pinned, skew, *ruled = problems
    pool = GrowthTerms(name="pool", bin=0, accelerators=8, price=1, limit=1)

    for problem, reason in (
        (pinned, "something runs already"),
        (replace(skew, growth=(pool,)), "nodes can be added"),
        *((one, "spread, kept together or kept apart") for one in ruled),
    ):
        with pytest.raises(TooLargeError, match=reason):
            place(problem, gap=0.0, seconds=1.0)
