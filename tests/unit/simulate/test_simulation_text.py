"""The text that `stowplan simulate` prints in a terminal."""

from __future__ import annotations

import pytest

from controller.closedloop.outcome import PolicyOutcome
from controller.closedloop.policy import Told
from controller.closedloop.scenario import Scenario
from controller.commands.plan.terminal import print_lines, terminal
from controller.commands.simulate.results import Results
from controller.commands.simulate.text import text_parts
from controller.commands.simulate.wording import amount


def told(seconds: float, current: int, replicas: int) -> Told:
    """Return a decision with a sentence like the planner's."""
    moves = f"goes from {current} to {replicas}" if current != replicas else f"stays at {replicas}"
    return Told(
        seconds=seconds,
        variant="v",
        replicas=replicas,
        current_replicas=current,
        sentence=f"v {moves} replicas",
    )


def changes(*decisions: Told) -> list[str]:
    """Return the lines below the heading of the decisions."""
    scenario = Scenario(name="s", models=(), variants=(), nodes=())
    outcome = PolicyOutcome(
        scenario="s",
        policy="stowplan",
        cost=0.0,
        requests=0,
        missed=0.0,
        missed_ttft=0.0,
        missed_itl=0.0,
        never_finished=0.0,
        abandoned=0.0,
        models=(),
        variants=(),
        points=(),
        told=decisions,
    )
    parts = text_parts(Results(scenario=scenario, outcomes=(outcome,)))
    lines = print_lines(parts, terminal(120)).splitlines()
    return lines[lines.index("what stowplan decided (HPAs follow later):") + 1 :]


def test_a_decision_is_listed_if_its_number_differs_from_the_previous_one() -> None:
    """While the autoscaler waits, the same number is decided repeatedly."""
    found = changes(told(-15, 2, 2), told(15, 2, 4), told(30, 3, 4), told(45, 4, 3))

    assert found == ["  0:00:15  v goes from 2 to 4 replicas", "  0:00:45  v goes from 4 to 3 replicas"]


def test_a_decision_to_keep_the_current_replicas_after_another_one_is_listed() -> None:
    """Without it, the next decision would look like a repetition of the previous one."""
    found = changes(told(0, 3, 3), told(15, 3, 2), told(30, 3, 3), told(45, 3, 2))

    assert found == [
        "  0:00:15  v goes from 3 to 2 replicas",
        "  0:00:30  v stays at 3 replicas",
        "  0:00:45  v goes from 3 to 2 replicas",
    ]


def test_the_first_decision_of_a_cold_start_is_compared_with_the_current_replicas() -> None:
    """There is no previous decision."""
    assert changes(told(0, 1, 2), told(15, 1, 2)) == ["  0:00:00  v goes from 1 to 2 replicas"]


AMOUNTS = {
    "a small cost keeps three digits": (1.666, "1.67"),
    "trailing zeros are left out": (31.0, "31"),
    "a tiny cost has no exponent": (0.0000123, "0.0000123"),
    "from 100 on, all digits of the integer part are shown": (12345.6, "12346"),
    "a number that is rounded to 100 has no fraction": (99.97, "100"),
    "zero is one digit": (0.0, "0"),
}


@pytest.mark.parametrize(("cost", "text"), AMOUNTS.values(), ids=AMOUNTS)
def test_a_cost_has_three_significant_digits(cost: float, text: str) -> None:
    """All digits of the integer part are shown if there are more."""
    assert amount(cost) == text
