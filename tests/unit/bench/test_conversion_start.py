"""What is said of the starts of the conversion server."""

from __future__ import annotations

import pytest

from hack.bench.conversion.start import Start, start_goals, starts_table

STARTS = [Start(seconds=seconds, cpu_seconds=0.4) for seconds in (0.31, 0.45, 2.0)]


@pytest.mark.parametrize(("seconds", "end"), [(0.45, "s, wanted <= 0.5: met"), (0.6, "missed")])
def test_the_median_is_held_to_the_goal(seconds: float, end: str) -> None:
    """One slow start does not miss it, and one quick start does not meet it."""
    starts = [Start(seconds=taken, cpu_seconds=0.4) for taken in (0.01, seconds, 9.0)]
    (goal,) = start_goals(starts)

    assert goal.line().endswith(end)


def test_without_starts_there_is_no_goal() -> None:
    """Nothing is said of what was not measured."""
    assert list(start_goals([])) == []


def test_the_table_names_the_longest_start_beside_the_median() -> None:
    """For that is what somebody notices."""
    assert starts_table(STARTS)[-1].split() == ["stowplan", "3", "0.45", "2.00", "0.40"]
