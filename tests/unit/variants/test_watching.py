"""What is watched from cycle to cycle: clocks, and engines that do not respond."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from support.cycle_stage import NOW, STEP, Stage
from support.logs import capture_logs

from controller.variants.advisory import Scope
from controller.variants.watching import SilenceLog, SteadyClock, silent_objects

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


A, B = ("ns", "a"), ("ns", "b")
ASKED = [(A, "a-0"), (A, "a-1"), (B, "b-0")]
REFUSED = "Prometheus: connection refused"

SILENT: dict[str, tuple[dict[str, str], dict[tuple[str, str], str]]] = {
    "all respond": ({}, {}),
    "one of two pods": ({"a-0": "x"}, {}),
    "all pods of one object": ({"a-0": "x", "a-1": "y"}, {A: "x"}),
    "all pods": ({"a-0": "x", "a-1": "x", "b-0": "x"}, {A: "x", B: "x"}),
}


@pytest.mark.parametrize(("failures", "want"), SILENT.values(), ids=SILENT.keys())
def test_an_object_is_silent_if_none_of_its_pods_responds(
    failures: Mapping[str, str], want: Mapping[tuple[str, str], str]
) -> None:
    """The cause is that of its first pod."""
    assert silent_objects(ASKED, failures) == want


def logged(*updates: Mapping[tuple[str, str], str]) -> list[tuple[str, str, str | None]]:
    """Return message, objects and cause of each line."""
    log = SilenceLog("model")
    with capture_logs() as lines:
        for silent in updates:
            log.update(silent)
    return [(line["event"], line["objects"], line.get("why")) for line in lines]


LINES: dict[str, tuple[list[dict[tuple[str, str], str]], list[tuple[str, str, str | None]]]] = {
    "nothing": ([{}, {}], []),
    "once while it lasts": ([{A: "x"}, {A: "x"}], [("no pod responds", "ns/a", "x")]),
    "once, although a number in the cause changes": (
        [{A: "7 lines"}, {A: "8 lines"}],
        [("no pod responds", "ns/a", "7 lines")],
    ),
    "again with another cause": (
        [{A: "x"}, {A: "y"}],
        [("no pod responds", "ns/a", "x"), ("no pod responds", "ns/a", "y")],
    ),
    "one line for all with one cause": (
        [{A: REFUSED, B: REFUSED}],
        [("no pod responds", "ns/a, ns/b", REFUSED)],
    ),
    "another object later": (
        [{A: "x"}, {A: "x", B: "x"}],
        [("no pod responds", "ns/a", "x"), ("no pod responds", "ns/b", "x")],
    ),
    "until they respond": (
        [{A: "x", B: "x"}, {B: "x"}],
        [("no pod responds", "ns/a, ns/b", "x"), ("pods respond again", "ns/a", None)],
    ),
    "at most five names": (
        [{("ns", str(number)): "x" for number in range(7)}],
        [("no pod responds", "ns/0, ns/1, ns/2, ns/3, ns/4 and 2 more", "x")],
    ),
}


@pytest.mark.parametrize(("updates", "want"), LINES.values(), ids=LINES.keys())
def test_silence_is_logged_once_per_change(
    updates: list[dict[tuple[str, str], str]], want: list[tuple[str, str, str | None]]
) -> None:
    """One line has all objects that became silent for the same cause."""
    assert logged(*updates) == want


async def test_a_blind_source_is_one_line_and_a_model_without_answers_is_a_metric() -> None:
    """The cycle goes on."""
    stage = Stage()
    reconciler = stage.reconciler(Scope())
    await reconciler.cycle()
    pods = [f"{name}-{number}" for name in ("quiet", "loud") for number in range(3)]
    stage.failures = dict.fromkeys(pods, REFUSED)

    with capture_logs() as lines:
        outcomes = [await reconciler.cycle() for _ in range(3)]

    told = [line for line in lines if line["event"] == "no pod responds"]
    assert [(line["objects"], line["why"]) for line in told] == [("ns/loud, ns/quiet", REFUSED)]
    assert outcomes[-1].silent_models == {("ns", "quiet"): REFUSED, ("ns", "loud"): REFUSED}
