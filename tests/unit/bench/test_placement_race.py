"""CPU time to an equal gap, compared with HiGHS, and the lower bound if HiGHS is stopped."""

from __future__ import annotations

from dataclasses import replace

from hack.bench.compared import OURS
from hack.bench.placement.child import measured
from hack.bench.placement.engines import HIGHS, HIGHS_ROUGH
from hack.bench.placement.outcome import Bound, Job, Outcome
from hack.bench.placement.race import COLUMNS, race_goals, raced
from hack.bench.table import tabulated
from hack.fleets.catalogue import Instance

TIGHT = Instance(family="F4-tight", size=2000, seed=0)
FIRST, LAST, COST = "demand of priority 0", "demand of priority 1", "cost"


def outcome(engine: str, cpu: float, **gaps_percent: float) -> Outcome:
    """Return an outcome with the given CPU time and gaps; levels without a gap have no bound."""
    names = {"first": FIRST, "last": LAST, "cost": COST}
    return Outcome(
        instance=TIGHT,
        engine=engine,
        cpu_seconds=(cpu,),
        wall_seconds=(cpu,),
        levels=dict.fromkeys(names.values(), 100_000),
        bounds={
            names[name]: Bound(value=100_000, bound=100_000 - round(gap * 1000), total=100_000)
            for name, gap in gaps_percent.items()
        },
    )


OURS_IN_TWO = outcome(OURS, 2.0, first=0.0, last=0.05, cost=0.05)


def test_the_ratio_is_exact_if_highs_reaches_the_gap() -> None:
    """There is a goal for the rough and for the exact gap."""
    rough = raced(OURS_IN_TWO, outcome(HIGHS_ROUGH, 16.0, first=0.0, last=0.1, cost=0.02))
    exact = raced(OURS_IN_TWO, outcome(HIGHS, 400.0, first=0.0, last=0.0, cost=0.0))

    assert (rough.times, rough.stopped_at) == (8.0, "")
    assert [goal.line() for goal in race_goals([rough, exact])] == [
        "goal: T7_cpu_share_of_highs_to_the_same_gap_at_2000 12.5 %, wanted <= 10: missed",
        "goal: T7_cpu_share_of_highs_to_the_optimum_at_2000 0.50 %, wanted <= 1: met",
    ]
    assert tabulated(COLUMNS, [rough])[1].endswith("8.00  within its gap")


def test_the_ratio_is_a_lower_bound_if_highs_is_stopped() -> None:
    """No gap was reached; nevertheless, one goal is met, and the other one is not shown."""
    found = raced(OURS_IN_TWO, outcome(HIGHS_ROUGH, 100.0, first=0.0, last=3.0))

    assert (found.stopped_at, found.stopped_gap_percent, found.times) == (LAST, 3.0, 50.0)
    assert [goal.line() for goal in race_goals([found])] == [
        "goal: T7_cpu_share_of_highs_to_the_same_gap_at_2000 at most 2.00 %, wanted <= 10: met",
        "goal: T7_cpu_share_of_highs_to_the_optimum_at_2000 at most 2.00 %, wanted <= 1: not shown",
    ]
    assert tabulated(COLUMNS, [found])[1].endswith("at least 50.0  stopped at demand of priority 1, at 3 %")


def test_a_level_without_a_bound_was_not_reached() -> None:
    """HiGHS found no solution in time."""
    found = raced(OURS_IN_TWO, outcome(HIGHS_ROUGH, 30.0, first=0.0))

    assert (found.stopped_at, found.stopped_gap_percent) == (LAST, None)
    assert tabulated(COLUMNS, [found])[1].endswith("without an answer")


def test_without_a_race_there_is_no_goal() -> None:
    """A race without bounds still has a ratio."""
    found = raced(replace(OURS_IN_TWO, bounds={}), outcome(HIGHS_ROUGH, 30.0))

    assert list(race_goals([])) == []
    assert (found.times, found.our_gap_percent) == (15.0, None)


def test_highs_reaches_the_gap_with_few_models() -> None:
    """The gap is 0.1 % of the total at each level."""
    few = Job(instance=replace(TIGHT, size=20), engine=HIGHS_ROUGH, seconds=20.0, rounds=1, is_race=True)
    found = measured(few)

    assert raced(OURS_IN_TWO, found).stopped_at == ""
    assert (found.worst_gap_percent or 0.0) <= 0.1


def test_a_race_ends_at_the_first_level_without_a_proof() -> None:
    """Without time, this is the first level."""
    late = Job(instance=replace(TIGHT, size=20), engine=HIGHS_ROUGH, seconds=0.0, rounds=1, is_race=True)

    assert raced(OURS_IN_TWO, measured(late)).stopped_gap_percent is None
