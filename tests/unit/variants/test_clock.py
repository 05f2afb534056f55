"""Changes of the system clock on the machine of the controller."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.cycle_stage import NOW, STEP, Stage
from support.logs import capture_logs

from controller.variants.advisory import Scope
from controller.variants.watching import SteadyClock

JUMPS = {
    "one hour ahead": timedelta(hours=1),
    "ten minutes back": timedelta(minutes=-10),
    "ten seconds back, which would make a rate by that clock three times as high": timedelta(seconds=-10),
    "half a minute ahead, which would make a rate by that clock a third": timedelta(seconds=30),
}


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS.keys())
async def test_a_change_of_the_clock_changes_no_rate_and_no_decision(jump: timedelta) -> None:
    """Published times follow the new clock, and the change is logged once."""
    stage, undisturbed = Stage(), Stage()
    reconciler, other = await stage.watched(Scope()), await undisturbed.watched(Scope())

    stage.time += jump
    stage.set_by += jump
    with capture_logs() as lines:
        for _ in range(5):
            outcome, expected = await reconciler.cycle(), await other.cycle()
            assert outcome.plan.decisions == expected.plan.decisions
            stage.time, undisturbed.time = stage.time + STEP, undisturbed.time + STEP

    said = [line for line in lines if line["event"].startswith("the system clock was changed")]
    assert [line["by_seconds"] for line in said] == [jump.total_seconds()]
    beat = stage.pulse.annotations()["stowplan.dev/last-cycle"]
    assert beat.startswith((stage.time - STEP).strftime("%Y-%m-%dT%H:%M:%S"))


async def test_a_clock_that_is_not_changed_is_not_logged() -> None:
    """This holds for any number of cycles."""
    stage = Stage()
    reconciler = stage.reconciler(Scope())

    with capture_logs() as lines:
        for _ in range(5):
            await reconciler.cycle()
            stage.time += STEP

    assert not [line for line in lines if "clock" in line["event"]]


def test_the_steady_clock_starts_at_the_wall_clock_and_continues_by_the_boot_clock() -> None:
    """The boot clock also counts the time during which the machine is suspended."""
    wall, boot = NOW.timestamp(), 1000.0
    clock = SteadyClock(wall=lambda: wall, boot=lambda: boot)
    began = clock.seconds()

    wall, boot = wall - 86_400.0, boot + 15.0

    assert (began, clock.seconds()) == (NOW.timestamp(), NOW.timestamp() + 15.0)
