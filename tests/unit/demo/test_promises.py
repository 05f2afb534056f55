"""What the demo promises of start-up times: who may wait while engines start, and that nobody flaps."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.demo_history import answered, seen, variant

from hack.demo import checks
from hack.demo.history import History
from hack.demo.scenario import CHAPTERS, END_SECONDS, EXCUSED_SECONDS

START = {chapter.name: chapter.from_seconds for chapter in CHAPTERS}
EXCUSED = (START["shortage"], START["shortage"] + EXCUSED_SECONDS)


def every(from_seconds: float, to_seconds: float, *, step: int) -> tuple[float, ...]:
    """Return whole seconds of a stretch, so far apart."""
    return tuple(range(math.ceil(from_seconds), math.ceil(to_seconds), step))


@pytest.mark.parametrize(
    ("late_at", "holds"),
    [
        pytest.param(every(*EXCUSED, step=2), True, id="while what the surge needs starts"),
        pytest.param(every(*EXCUSED, step=1), False, id="all of them for so long"),
        pytest.param(every(0, EXCUSED[0], step=5), False, id="before the surge"),
        pytest.param(every(EXCUSED[1], END_SECONDS, step=5), False, id="long after the surge began"),
        pytest.param(every(0, END_SECONDS, step=20), True, id="a few now and then"),
    ],
)
def test_premium_may_wait_only_while_engines_start(late_at: tuple[float, ...], *, holds: bool) -> None:
    """Nine of ten first tokens are to come in time on both sides of that, and four of five in all."""
    history = History(served=[answered(late_at=late_at)])

    assert checks.premium_is_served_in_time(history).holds is holds


def test_requests_that_never_end_are_late() -> None:
    """Who is not answered at all must not look well served."""
    whole = answered()
    half = replace(whole, finished=whole.finished[:150])

    assert not checks.premium_is_served_in_time(History(served=[half])).holds


@pytest.mark.parametrize(
    ("course", "holds"),
    [
        pytest.param([1, 2, 1, 5, 3, 4, 1], True, id="settles, surges, gives way, returns, shrinks"),
        pytest.param([1, 2] * 6, False, id="up and down and up again"),
        pytest.param([], False, id="nothing was seen"),
    ],
)
def test_replicas_change_direction_as_often_as_the_story_at_most(course: list[int], *, holds: bool) -> None:
    """Counted are the replicas that the Deployment asks for."""
    history = History(
        observations=[
            seen(float(second), variant("big-h100", count), variant("small-a100", 1))
            for second, count in enumerate(course)
        ]
    )

    assert checks.nobody_flaps(history).holds is holds
