"""Goals and table of small fleets."""

from __future__ import annotations

from dataclasses import replace

from hack.bench.compared import OURS
from hack.bench.placement.goals import small_goals
from hack.bench.placement.outcome import Bound, Outcome
from hack.bench.placement.report import small_table
from hack.fleets.catalogue import Instance


def placed(family: str, cpu: float, *, gap: int | None = 0, size: int = 100) -> Outcome:
    """Return an outcome of our engine with a gap of the cost; without a gap, nothing is proven."""
    return Outcome(
        instance=Instance(family=family, size=size, seed=0),
        engine=OURS,
        cpu_seconds=(cpu, cpu, 10 * cpu),
        levels={"cost": 100},
        bounds={} if gap is None else {"cost": Bound(value=100, bound=100 - gap, total=100)},
    )


FOUND = [
    placed("F4-tight", 0.4),
    placed("F2-plenty", 0.2, gap=None),
    placed("F9-zones-10", 8.0, gap=1),
    placed("F14-ties", 50.0),
    placed("F4-tight", 90.0, size=500),
    replace(placed("F4-tight", 70.0), engine="wva-greedy"),
]


def test_families_with_rules_of_pods_have_separate_goals() -> None:
    """The slowest fleet counts, at the reference machine's pace; F14 and larger fleets are not included."""
    assert [goal.line() for goal in small_goals(FOUND, slowness=2.0)] == [
        "goal: T6_cpu_of_at_most_100 0.20 s, wanted <= 0.3: met",
        "goal: T6_not_proven_optimal_of_at_most_100 50.0 %, wanted <= 0: missed",
        "goal: T6_cpu_of_at_most_100_with_rules 4.00 s, wanted <= 0.3: missed",
        "goal: T6_not_proven_optimal_of_at_most_100_with_rules 100 %, wanted <= 0: missed",
    ]


def test_each_family_has_a_line_in_the_table() -> None:
    """The line contains time, gap, and the number of proven optima."""
    lines = [line.split() for line in small_table(FOUND, slowness=2.0)[1:]]

    assert lines == [
        ["F4-tight", "100", "1", "0.200", "0.200", "0.0000", "1", "of", "1"],
        ["F2-plenty", "100", "1", "0.100", "0.100", "-", "0", "of", "1"],
        ["F9-zones-10", "100", "1", "4.000", "4.000", "1.0000", "0", "of", "1"],
        ["F14-ties", "100", "1", "25.000", "25.000", "0.0000", "1", "of", "1"],
    ]
    assert small_table(FOUND[4:], slowness=1.0) == []
