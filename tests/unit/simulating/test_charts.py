"""Axes have room for every value, and lines are drawn as they were: with their gaps, steps and peaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outline import outline

from controller.simulating.chart import MOST_POINTS, Chart, Line, Mark, drawn, thinned
from controller.simulating.scale import Scale, linear, logarithmic, moments

VALUES = st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-6, 1e9)), max_size=20)


@given(VALUES)
def test_a_linear_axis_begins_at_zero_and_has_room_for_every_value(values: list[float | None]) -> None:
    """Its named values are few, begin at 0 and end at the top."""
    found = linear(values)

    assert (found.low, found.ticks[0], found.ticks[-1]) == (0.0, 0.0, pytest.approx(found.high))
    assert found.high >= max((value for value in values if value), default=0.0) * (1 - 1e-6)
    assert 2 <= len(found.ticks) <= 6


@given(st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-6, 1e6)), max_size=20))
def test_a_logarithmic_axis_has_room_for_every_value_above_zero(values: list[float | None]) -> None:
    """At least one value is named on it, and none outside of it."""
    found = logarithmic(values)
    known = [value for value in values if value]

    assert 0 < found.low < found.high
    assert all(found.low * (1 - 1e-6) <= value <= found.high * (1 + 1e-6) for value in known)
    assert found.ticks
    assert all(0 <= found.share(tick) <= 1 for tick in found.ticks)


@given(st.floats(0, 1e5), st.floats(15, 7 * 86400))
def test_an_axis_of_time_names_a_few_round_moments(warm_up: float, length: float) -> None:
    """All within it."""
    found = moments(-warm_up, length)

    assert 1 <= len(found.ticks) <= 9
    assert all(-warm_up <= tick <= length for tick in found.ticks)


ROUND = {
    "a few": ([3.0], (0.0, 1.0, 2.0, 3.0)),
    "a rate": ([26.4, None, 7.0], (0.0, 10.0, 20.0, 30.0)),
    "nothing": ([], (0.0, 1.0)),
}


@pytest.mark.parametrize(("values", "ticks"), ROUND.values(), ids=ROUND)
def test_named_values_are_round(values: list[float | None], ticks: tuple[float, ...]) -> None:
    """As a person would choose them."""
    assert linear(values).ticks == ticks


def test_counts_are_named_at_whole_numbers() -> None:
    """Nobody has half a replica."""
    assert linear([2.0], least_step=1.0).ticks == (0.0, 1.0, 2.0)


def chart(line: Line, *marks: Mark) -> Chart:
    """Return a chart of 100 seconds and values up to 10."""
    axis = Scale(low=0.0, high=10.0, ticks=(0.0, 10.0))
    return Chart(
        title="t",
        lines=(line,),
        time=Scale(low=0.0, high=100.0, ticks=(0.0, 100.0)),
        values=axis,
        value_text=str,
        time_text=str,
        marks=marks,
    )


PATHS = {
    "a line": ({}, [(0, 0.0), (50, 5.0), (100, 10.0)], "M0.0 100.0L500.0 50.0L1000.0 0.0"),
    "a gap": ({}, [(0, 1.0), (10, 2.0), (20, None), (30, 2.0)], "M0.0 90.0L100.0 80.0M300.0 80.0H300.0"),
    "steps": ({"is_stepped": True}, [(0, 1.0), (10, 1.0), (20, 2.0), (30, 2.0)],
              "M0.0 90.0H200.0V80.0H300.0"),
    "an area": ({"is_stepped": True, "is_area": True}, [(0, 1.0), (10, 2.0)],
                "M0.0 90.0H100.0V80.0H100.0V100H0.0Z"),
    "nothing at all": ({}, [(0, None)], ""),
}  # fmt: skip


@pytest.mark.parametrize(("looks", "course", "path"), PATHS.values(), ids=PATHS)
def test_lines_are_drawn_as_they_were(
    looks: dict[str, bool], course: list[tuple[float, float | None]], path: str
) -> None:
    """Interrupted where nothing is known, straight until a step."""
    markup = drawn(chart(Line(name="l", look="load", course=course, **looks)))
    drawing = [item for name, item in outline(markup.html).elements if name == "path"]

    assert (drawing[-1].get("d") or "") == path


def test_a_decision_is_a_link_to_where_it_is_listed() -> None:
    """And shows its text under the pointer."""
    mark = Mark(seconds=50, value=10, text="a < b", anchor="policy-1-0")
    markup = drawn(chart(Line(name="l", look="load", course=[]), mark)).html

    assert '<a href="#policy-1-0"><path d="M500.0 0.0h0" class="mark"><title>a &lt; b</title>' in markup


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=3 * MOST_POINTS))
def test_thinning_keeps_peaks_and_the_end(values: list[float | None]) -> None:
    """However long a run is, its line has a bounded number of points."""
    course = [(float(seconds), value) for seconds, value in enumerate(values)]
    found = thinned(course)

    assert len(found) <= MOST_POINTS
    assert found[-1][0] == course[-1][0]
    assert max((value or 0.0) for _, value in found) == max((value or 0.0) for value in values)
