"""Charts: axes cover every value, and lines keep gaps, steps and peaks."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.commands.simulate.chart import (
    MOST_POINTS,
    Axis,
    Chart,
    Line,
    linear,
    logarithmic,
    thin,
    time_scale,
)

VALUES = st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-6, 1e9)), max_size=20)


@given(VALUES)
def test_a_linear_axis_starts_at_zero_and_covers_every_value(values: list[float | None]) -> None:
    """It has 2 to 6 ticks, from 0 to its end."""
    found = linear(values)

    assert (found.low, found.ticks[0], found.ticks[-1]) == (0.0, 0.0, pytest.approx(found.high))
    assert found.high >= max((value for value in values if value), default=0.0) * (1 - 1e-6)
    assert 2 <= len(found.ticks) <= 6


@given(st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-6, 1e6)), max_size=20))
def test_a_logarithmic_axis_covers_every_positive_value(values: list[float | None]) -> None:
    """It has at least one tick, and all ticks are between its ends."""
    found = logarithmic(values)
    known = [value for value in values if value]

    assert 0 < found.low < found.high
    assert all(found.low * (1 - 1e-6) <= value <= found.high * (1 + 1e-6) for value in known)
    assert found.ticks
    assert all(0 <= found.share(tick) <= 1 for tick in found.ticks)


@given(st.floats(0, 1e5), st.floats(15, 7 * 86400))
@example(1.6498596980818547, 604799.9999999999)  # their sum is rounded up
def test_a_time_axis_has_a_few_ticks(warm_up: float, length: float) -> None:
    """It has 1 to 9 ticks, all of them within the time range."""
    found = time_scale(-warm_up, length)

    assert 1 <= len(found.ticks) <= 9
    assert all(-warm_up <= tick <= length for tick in found.ticks)


ROUND = {
    "one small count": ([3.0], (0.0, 1.0, 2.0, 3.0)),
    "a rate with a gap": ([26.4, None, 7.0], (0.0, 10.0, 20.0, 30.0)),
    "nothing": ([], (0.0, 1.0)),
}


@pytest.mark.parametrize(("values", "ticks"), ROUND.values(), ids=ROUND)
def test_ticks_are_at_round_values(values: list[float | None], ticks: tuple[float, ...]) -> None:
    """A list without values gives an axis from 0 to 1."""
    assert linear(values).ticks == ticks


def test_ticks_of_counts_are_whole_numbers() -> None:
    """`least_step` prevents ticks at fractions of a replica."""
    assert linear([2.0], least_step=1.0).ticks == (0.0, 1.0, 2.0)


def chart(line: Line) -> Chart:
    """Return a chart of 100 seconds and values up to 10."""
    axis = Axis(low=0.0, high=10.0, ticks=(0.0, 10.0))
    return Chart(
        title="t",
        lines=(line,),
        time=Axis(low=0.0, high=100.0, ticks=(0.0, 100.0)),
        values=axis,
    )


PATHS = {
    "a straight line": ({}, [(0, 0.0), (50, 5.0), (100, 10.0)], "M0.0 100.0L500.0 50.0L1000.0 0.0"),
    "one gap": ({}, [(0, 1.0), (10, 2.0), (20, None), (30, 2.0)], "M0.0 90.0L100.0 80.0M300.0 80.0H300.0"),
    "steps": ({"is_stepped": True}, [(0, 1.0), (10, 1.0), (20, 2.0), (30, 2.0)],
              "M0.0 90.0H200.0V80.0H300.0"),
    "an area below steps": ({"is_stepped": True, "is_area": True}, [(0, 1.0), (10, 2.0)],
                "M0.0 90.0H100.0V80.0H100.0V100H0.0Z"),
    "no value at all": ({}, [(0, None)], ""),
}  # fmt: skip


@pytest.mark.parametrize(("looks", "course", "path"), PATHS.values(), ids=PATHS)
def test_paths_show_gaps_and_steps(
    looks: dict[str, bool], course: list[tuple[float, float | None]], path: str
) -> None:
    """A line has a gap where there is no value, and a stepped line is horizontal until the next value."""
    line = Line(name="l", look="load", course=course, **looks)

    assert chart(line).path(line) == path


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=3 * MOST_POINTS))
def test_thinning_keeps_peaks_and_the_end(values: list[float | None]) -> None:
    """The number of points of a line is bounded, however long the run is."""
    course = [(float(seconds), value) for seconds, value in enumerate(values)]
    found = thin(course)

    assert len(found) <= MOST_POINTS
    assert found[-1][0] == course[-1][0]
    assert max((value or 0.0) for _, value in found) == max((value or 0.0) for value in values)
