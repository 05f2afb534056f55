"""Goal and table of the conversion server's start-up time."""

from __future__ import annotations

import pytest

from hack.bench.conversion.start import Start, start_goal, starts_table

STARTS = [Start(seconds=seconds, cpu_seconds=0.4) for seconds in (0.31, 0.45, 2.0)]


@pytest.mark.parametrize(("seconds", "end"), [(0.45, "s, wanted <= 0.5: met"), (0.6, "missed")])
def test_the_goal_applies_to_the_median(seconds: float, end: str) -> None:
    """Neither one slow nor one fast start decides."""
    starts = [Start(seconds=taken, cpu_seconds=0.4) for taken in (0.01, seconds, 9.0)]

    assert start_goal(starts).line().endswith(end)


def test_the_table_contains_the_median_and_the_longest_start() -> None:
    """The longest start is the one that users notice."""
    assert starts_table(STARTS)[-1].split() == ["stowplan", "3", "0.45", "2.00", "0.40"]
