"""Percentiles by nearest rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.bench.percentiles import percentile

KNOWN = {
    "the middle of an odd number": ([3.0, 1.0, 2.0], 50, 2.0),
    "the lower middle of an even number": ([4.0, 1.0, 3.0, 2.0], 50, 2.0),
    "the 99th of a hundred": ([float(value) for value in range(1, 101)], 99, 99.0),
    "all of them": ([1.0, 2.0, 3.0], 100, 3.0),
    "none of them is the least": ([1.0, 2.0, 3.0], 0, 1.0),
    "a single one": ([7.0], 99, 7.0),
}


@pytest.mark.parametrize(("values", "percent", "want"), KNOWN.values(), ids=KNOWN.keys())
def test_known_percentiles(values: list[float], percent: float, want: float) -> None:
    """The order of the values does not matter."""
    assert percentile(values, percent) == want


@given(st.lists(st.integers(0, 50).map(float), min_size=1), st.integers(0, 100))
def test_enough_values_are_not_above_a_percentile(values: list[float], percent: int) -> None:
    """And it is one of the values."""
    found = percentile(values, percent)

    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)


def test_there_is_no_percentile_of_nothing() -> None:
    """A silent 0 would look like a very fast server."""
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_share_of_one_is_no_percentage_beyond_it() -> None:
    """The usual slip is to pass something else than 0 to 100."""
    with pytest.raises(ValueError, match="no percentage"):
        percentile([1.0], 101)
