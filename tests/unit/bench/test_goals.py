"""Goal lines: what a machine may grep for."""

from __future__ import annotations

import pytest

from hack.bench.goals import Goal, shown

LINES = {
    "within the goal": (
        Goal(name="cpu", value=71.26, unit="µs", most=80),
        "goal: cpu 71.3 µs, wanted <= 80: met",
    ),
    "exactly at it": (
        Goal(name="cpu", value=80.0, unit="µs", most=80),
        "goal: cpu 80.0 µs, wanted <= 80: met",
    ),
    "beyond it": (
        Goal(name="refused", value=2.04, unit="times", most=2),
        "goal: refused 2.04 times, wanted <= 2: missed",
    ),
    "known to be less, and that is enough": (
        Goal(name="share", value=3.0, unit="%", most=10, is_upper_bound=True),
        "goal: share at most 3.00 %, wanted <= 10: met",
    ),
    "known to be less, and that says nothing": (
        Goal(name="share", value=30.0, unit="%", most=10, is_upper_bound=True),
        "goal: share at most 30.0 %, wanted <= 10: not shown",
    ),
    "a goal that is no round number": (
        Goal(name="share", value=3.0, unit="%", most=100 / 30),
        "goal: share 3.00 %, wanted <= 3.333: met",
    ),
}


@pytest.mark.parametrize(("goal", "want"), LINES.values(), ids=LINES.keys())
def test_a_goal_says_how_it_went(goal: Goal, want: str) -> None:
    """One line: name, value, unit, limit, outcome."""
    assert goal.line() == want
    assert goal.as_json()["met"] is want.endswith(": met")


SHOWN = {0.0421: "0.04", 9.994: "9.99", 10.04: "10.0", 99.94: "99.9", 123.4: "123", 3307.2: "3307"}


@pytest.mark.parametrize(("value", "want"), SHOWN.items(), ids=SHOWN.values())
def test_a_number_gets_the_places_that_it_deserves(value: float, want: str) -> None:
    """Never an exponent."""
    assert shown(value) == want
