"""Decisions over time as rows and charts, if users' metrics and targets have the same names as other rows."""

from __future__ import annotations

from dataclasses import replace

from controller.closedloop.decided import Decided, DecidedPoint
from controller.commands.simulate.decided_charts import decided_charts
from controller.commands.simulate.decided_text import Courses, courses_of, over_time
from controller.commands.simulate.scale import linear

CLASHING = Decided(
    targets=("recommended", "decided"),
    points=(
        DecidedPoint(
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
