"""Goal lines of the benchmarks, which can be searched by programs."""

from __future__ import annotations

import pytest

from hack.bench.goals import Goal, shown

LINES = {
    "within the goal": (
        Goal(name="cpu", value=71.26, unit="µs", most=80),
        "goal: cpu 71.3 µs, wanted <= 80: met",
    ),
    "equal to the goal": (
        Goal(name="cpu", value=80.0, unit="µs", most=80),
        "goal: cpu 80.0 µs, wanted <= 80: met",
    ),
    "above the goal": (
        Goal(name="refused", value=2.04, unit="times", most=2),
        "goal: refused 2.04 times, wanted <= 2: missed",
    ),
    "an upper bound within the goal": (
        Goal(name="share", value=3.0, unit="%", most=10, is_upper_bound=True),
        "goal: share at most 3.00 %, wanted <= 10: met",
    ),
    "an upper bound above the goal": (
        Goal(name="share", value=30.0, unit="%", most=10, is_upper_bound=True),
        "goal: share at most 30.0 %, wanted <= 10: not shown",
    ),
    "a goal with a fraction": (
        Goal(name="share", value=3.0, unit="%", most=100 / 30),
        "goal: share 3.00 %, wanted <= 3.333: met",
    ),
}


@pytest.mark.parametrize(("goal", "want"), LINES.values(), ids=LINES.keys())
def test_a_goal_line_states_the_result(goal: Goal, want: str) -> None:
    """The line contains name, value, unit, limit and result."""
    assert goal.line() == want
    assert goal.as_json()["met"] is want.endswith(": met")


SHOWN = {0.0421: "0.04", 9.994: "9.99", 10.04: "10.0", 99.94: "99.9", 123.4: "123", 3307.2: "3307"}


@pytest.mark.parametrize(("value", "want"), SHOWN.items(), ids=SHOWN.values())
def test_numbers_are_rounded_to_about_three_significant_digits(value: float, want: str) -> None:
    """They never have an exponent."""
    assert shown(value) == want
