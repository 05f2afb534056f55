"""The forecast of arrivals and its bounds: worked examples, and properties over random histories."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.sizing.forecast import FEWEST, MOST_GROWTH, forecast

VECTORS = {
    "a linear rise continues": ([40.0 + i for i in range(20)], 59, 69.0),
    "noise around a constant adds its error to the line": ([58.0, 62.0] * 10, 62, 62.811),
    "a rate beyond the noise is an upper bound by itself": ([58.0, 62.0] * 9 + [58.0, 63.0], 63, 65.283),
    "a jump at the end gives a steep line": ([30.0] * 19 + [90.0], 90, 103.516),
}

HISTORIES = st.lists(st.floats(0, 1e4), min_size=1, max_size=20)


def history(rates: list[float]) -> list[tuple[float, float]]:
    """Return one sample per second."""
    return [(float(second), rate) for second, rate in enumerate(rates)]


@pytest.mark.parametrize("name", VECTORS)
def test_forecasts_equal_those_of_worked_examples(name: str) -> None:
    """The upper bound is one standard deviation above the line, ten seconds ahead."""
    rates, now, upper = VECTORS[name]

    found = forecast(
        history(rates),
        ahead_seconds=10,
        history_seconds=20,
        deviations=1,
        release_deviations=2,
    )

    assert (found.now, round(found.upper, 3)) == (now, upper)


def test_few_samples_give_no_trend_and_no_bound_for_release() -> None:
    """A controller that has just become the leader plans for the current rate, and removes nothing."""
    found = forecast(
        history([5.0, 7.0, 6.0]),
        ahead_seconds=10,
        history_seconds=20,
        deviations=1,
        release_deviations=2,
    )

    assert (found.now, found.upper, found.release) == (7.0, 7.0, math.inf)


@pytest.mark.parametrize(
    ("count", "every_seconds", "growth"),
    [
        pytest.param(4, 15, 2.0, id="the first line after a change of the leader"),
        pytest.param(10, 15, 5.0, id="half of the history"),
        pytest.param(20, 15, 10.0, id="a complete history"),
        pytest.param(5, 60, 10.0, id="a complete history, with samples in every fourth cycle only"),
    ],
)
def test_a_trend_is_extrapolated_over_the_share_of_the_start_up_time_that_the_history_covers(
    count: int, every_seconds: int, growth: float
) -> None:
    """A line through a few samples is steep by chance, and would cause a surge of replicas."""
    samples = [(float(moment), 40 + moment / 10) for moment in range(0, count * every_seconds, every_seconds)]

    found = forecast(samples, ahead_seconds=100, history_seconds=300, deviations=1, release_deviations=2)

    assert found.upper - found.now == pytest.approx(growth)


def test_without_samples_there_is_no_forecast() -> None:
    """A missing rate is not zero."""
    with pytest.raises(ValueError, match="at least one sample"):
        forecast([], ahead_seconds=10, history_seconds=20, deviations=1, release_deviations=2)


@given(HISTORIES, st.floats(0, 600), st.floats(0, 3), st.floats(0, 3))
def test_bounds_are_ordered_and_growth_is_limited(
    rates: list[float], ahead: float, z: float, more: float
) -> None:
    """The bound for release is infinite if and only if there are too few samples."""
    found = forecast(
        history(rates),
        ahead_seconds=ahead,
        history_seconds=20,
        deviations=z,
        release_deviations=z + more,
    )

    assert found.now <= found.upper <= found.release
    assert found.upper <= MOST_GROWTH * found.now
    assert (found.release == math.inf) == (len(rates) < FEWEST)


@given(st.floats(0, 1e4), st.integers(4, 20), st.floats(0, 600))
def test_a_constant_load_is_its_own_bound(rate: float, count: int, ahead: float) -> None:
    """Without noise there is no margin."""
    found = forecast(
        history([rate] * count),
        ahead_seconds=ahead,
        history_seconds=20,
        deviations=2,
        release_deviations=3,
    )

    assert found.release == pytest.approx(rate)
