"""The text that `stowplan simulate` prints in a terminal, and courses of decisions in it and in charts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.commands.plan.terminal import print_lines, terminal
from controller.commands.simulate.chart import linear
from controller.commands.simulate.page import decided_charts
from controller.commands.simulate.results import Courses, Results, amount, courses_of, over_time, text_parts
from controller.simulation.outcome import BindingCourse, BindingPoint, PolicyDecision, PolicyOutcome
from controller.simulation.scenario import Scenario


def told(seconds: float, current: int, replicas: int) -> PolicyDecision:
    """Return a decision with a sentence like the planner's."""
    moves = f"goes from {current} to {replicas}" if current != replicas else f"stays at {replicas}"
    return PolicyDecision(
        seconds=seconds,
        variant="v",
        replicas=replicas,
        current_replicas=current,
        sentence=f"v {moves} replicas",
    )


def changes(*decisions: PolicyDecision) -> list[str]:
    """Return the lines below the heading of the decisions."""
    scenario = Scenario(name="s", models=(), variants=(), nodes=())
    outcome = PolicyOutcome(
        scenario="s", policy="stowplan", cost=0.0, requests=0, missed=0.0, decisions=decisions
    )
    parts = text_parts(Results(scenario=scenario, outcomes=(outcome,)))
    lines = print_lines(parts, terminal(120)).splitlines()
    return lines[lines.index("what stowplan decided (HPAs follow later):") + 1 :]


def test_a_decision_is_listed_if_its_number_differs_from_the_previous_one() -> None:
    """While the autoscaler waits, the same number is decided repeatedly."""
    found = changes(told(-15, 2, 2), told(15, 2, 4), told(30, 3, 4), told(45, 4, 3))

    assert found == ["  0:00:15  v goes from 2 to 4 replicas", "  0:00:45  v goes from 4 to 3 replicas"]


def test_a_decision_to_keep_the_current_replicas_after_another_one_is_listed() -> None:
    """Without it, the next decision would look like a repetition of the previous one."""
    found = changes(told(0, 3, 3), told(15, 3, 2), told(30, 3, 3), told(45, 3, 2))

    assert found == [
        "  0:00:15  v goes from 3 to 2 replicas",
        "  0:00:30  v stays at 3 replicas",
        "  0:00:45  v goes from 3 to 2 replicas",
    ]


def test_the_first_decision_of_a_cold_start_is_compared_with_the_current_replicas() -> None:
    """There is no previous decision."""
    assert changes(told(0, 1, 2), told(15, 1, 2)) == ["  0:00:00  v goes from 1 to 2 replicas"]


AMOUNTS = {
    "a small cost keeps three digits": (1.666, "1.67"),
    "trailing zeros are left out": (31.0, "31"),
    "a tiny cost has no exponent": (0.0000123, "0.0000123"),
    "from 100 on, all digits of the integer part are shown": (12345.6, "12346"),
    "a number that is rounded to 100 has no fraction": (99.97, "100"),
    "zero is one digit": (0.0, "0"),
}


@pytest.mark.parametrize(("cost", "text"), AMOUNTS.values(), ids=AMOUNTS)
def test_a_cost_has_three_significant_digits(cost: float, text: str) -> None:
    """All digits of the integer part are shown if there are more."""
    assert amount(cost) == text


CLASHING = BindingCourse(
    targets=("recommended", "decided"),
    points=(
        BindingPoint(
            seconds=0.0, values={"decided": 50.0, "recommended": 60.0}, recommended=4, replicas=3,
            current_replicas=1, targets=(1, 2), in_panic=False, limits=(), sentence="",
        ),
    ),
)  # fmt: skip


def test_no_course_is_lost_if_metrics_and_targets_have_the_same_names() -> None:
    """There are six courses with only two names."""
    assert courses_of(CLASHING) == Courses(
        metrics=[("decided", [(0.0, 50.0)]), ("recommended", [(0.0, 60.0)])],
        recommended=("recommended", [(0.0, 4.0)]),
        decided=("decided", [(0.0, 3.0)]),
        targets=[("recommended", [(0.0, 1.0)]), ("decided", [(0.0, 2.0)])],
    )


def test_each_course_is_a_row_with_a_distinct_label() -> None:
    """The order is that of the courses; labels of replicas have two words, and targets are indented."""
    (names, *_) = over_time(CLASHING).columns

    assert [str(cell) for cell in names.cells] == [
        *("decided", "recommended", "replicas recommended", "replicas decided"),
        *("  recommended", "  decided"),
    ]


def test_the_label_of_recommended_replicas_names_their_capacity_if_targets_differ() -> None:
    """A replica of capacity 2.5 counts as one of the decided replicas, but as 2.5 of the recommended ones."""
    (names, *_) = over_time(replace(CLASHING, is_alike=False)).columns

    assert str(list(names.cells)[2]) == "replicas recommended, of capacity 1"


def test_each_metric_and_target_has_a_chart() -> None:
    """The first chart contains recommended and decided replicas, selected by kind and not by name."""
    charts = list(decided_charts(CLASHING, linear([0.0, 1.0])))

    assert [chart.title for chart in charts] == [
        *("Replicas", "decided", "recommended", "recommended", "decided")
    ]
    assert [line.course for chart in charts for line in chart.lines] == [
        *([(0.0, 3.0)], [(0.0, 4.0)]),
        *([(0.0, 50.0)], [(0.0, 60.0)], [(0.0, 1.0)], [(0.0, 2.0)]),
    ]
