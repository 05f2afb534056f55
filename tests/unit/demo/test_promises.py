"""Checks of the demo on latency while engines start, and on oscillation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.demo_history import answered, course

from hack.demo import checks
from hack.demo.observation import DemoHistory
from hack.demo.scenario import CHAPTERS, END_SECONDS, EXCUSED_SECONDS

START = {chapter.name: chapter.from_seconds for chapter in CHAPTERS}
EXCUSED = (START["shortage"], START["shortage"] + EXCUSED_SECONDS)


def every(from_seconds: float, to_seconds: float, *, step: int) -> tuple[float, ...]:
    """Return whole seconds between two times, at a distance of `step`."""
    return tuple(range(math.ceil(from_seconds), math.ceil(to_seconds), step))


@pytest.mark.parametrize(
    ("late_at", "holds"),
    [
        pytest.param(every(*EXCUSED, step=2), True, id="some while engines start for the surge"),
        pytest.param(every(*EXCUSED, step=1), False, id="all while engines start"),
        pytest.param(every(0, EXCUSED[0], step=5), False, id="before the surge"),
        pytest.param(every(EXCUSED[1], END_SECONDS, step=5), False, id="after engines have started"),
        pytest.param(every(0, END_SECONDS, step=20), True, id="a few at any time"),
    ],
)
def test_premium_requests_may_be_late_only_while_engines_start(
    late_at: tuple[float, ...], *, holds: bool
) -> None:
    """Before and after this time, 90 % of first tokens must be in time, and 80 % in total."""
    history = DemoHistory(served=[answered(late_at=late_at)])

    assert checks.premium_is_served_in_time(history).holds is holds


def test_requests_that_never_finish_are_late() -> None:
    """Otherwise, unanswered requests would improve the result."""
    whole = answered()
    half = replace(whole, finished=whole.finished[:150])

    assert not checks.premium_is_served_in_time(DemoHistory(served=[half])).holds


@pytest.mark.parametrize(
    ("replicas", "holds"),
    [
        pytest.param([1, 2, 1, 5, 3, 4, 1], True, id="as often as in the scenario"),
        pytest.param([1, 2] * 6, False, id="oscillating"),
    ],
)
def test_replicas_must_not_change_direction_more_often_than_in_the_scenario(
    replicas: list[int], *, holds: bool
) -> None:
    """The check counts `spec.replicas` of the Deployment."""
    observations = course(*((float(second), count, count) for second, count in enumerate(replicas)))

    assert checks.nobody_flaps(DemoHistory(observations=observations)).holds is holds
