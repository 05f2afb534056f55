"""The forecast of arrivals and its bound: worked examples, and properties over random histories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.sizing.arrivals import MEAN_TICKS, SPREAD_TICKS, forecast

EXAMPLES = {
    "a constant load has no bound above it": ([60.0] * 40, 60.0, 60.0),
    "noise adds its spread to the mean": ([58.0, 62.0] * 20, 60.0, 62.886),
    "the forecast of a rise is ahead of it by its spread, not by its slope": (
        [40.0 + number for number in range(40)],
        78.0,
        92.154,
    ),
    "one high rate is not yet a jump": ([30.0] * 39 + [90.0], 37.5, 51.015),
    "two high rates are one": ([30.0] * 38 + [90.0, 92.0], 90.0, 90.0),
    "a load that has ended is no deviation from the present one": ([90.0] * 20 + [30.0] * 20, 30.0, 30.0),
    "a single rate": ([7.0], 7.0, 7.0),
}

HISTORIES = st.lists(st.floats(0, 1e4), min_size=1, max_size=60)


@pytest.mark.parametrize("name", EXAMPLES)
def test_forecasts_equal_those_of_worked_examples(name: str) -> None:
    """The present rate is the mean of eight values, or the lower one of the last two if that is higher."""
    rates, now, upper = EXAMPLES[name]

    found = forecast(rates)

    assert (found.now, round(found.upper, 3)) == (now, upper)


def test_a_forecast_needs_a_rate() -> None:
    """No load is never zero load."""
    with pytest.raises(ValueError, match="at least one rate"):
        forecast([])


@given(HISTORIES)
def test_the_bound_is_never_below_the_present_rate(rates: list[float]) -> None:
    """The present rate is never above the highest one."""
    found = forecast(rates)

    assert found.upper >= found.now
    assert found.now <= max(rates) * (1 + 1e-9)


@given(HISTORIES, st.floats(0.1, 10))
def test_a_forecast_scales_with_the_load(rates: list[float], factor: float) -> None:
    """Twice the load has twice the forecast."""
    found, scaled = forecast(rates), forecast([rate * factor for rate in rates])

    assert scaled.now == pytest.approx(found.now * factor)
    assert scaled.upper == pytest.approx(found.upper * factor, abs=1e-6)


@given(HISTORIES, HISTORIES)
def test_only_recent_rates_count(old: list[float], recent: list[float]) -> None:
    """Older rates than those of the spread have no influence."""
    window = (recent * SPREAD_TICKS)[:SPREAD_TICKS]

    assert len(window) > MEAN_TICKS
    assert forecast([*old, *window]) == forecast(window)
