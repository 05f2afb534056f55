"""What is remembered of engines, and what they counted between two of their answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.engine_totals import alone, counted

from controller.observe.engines import EngineRecords
from controller.observe.readings import Part, Reading, Totals
from controller.sizing.records import EngineInterval, EngineReport

KEY, OTHER = ("ns", "pod"), ("ns", "other")
STEP_SECONDS = 15.0


def reading(time_seconds: float, totals: Totals, *, waiting: int = 0, **changes: Any) -> Reading:
    """Return what an engine says at a moment."""
    fields: dict[str, Any] = {
        "time_seconds": time_seconds,
        "kv_usage": 0.5,
        "running": 3,
        "kv_tokens": 160_000,
        "parts": alone(totals, waiting=waiting),
        "model_names": frozenset(),
    }
    return Reading(**fields | changes)


def at(time_seconds: float, requests: float, *, waiting: int = 0, **changes: Any) -> Reading:
    """Return what an engine says that has finished so many requests of 100 + 10 tokens."""
    return reading(time_seconds, counted(requests, prompt_tokens=100 * requests), waiting=waiting, **changes)


def watched(
    *looks: Reading | None, came_at: int = 0, ready_at: int | None = None
) -> list[EngineReport | None]:
    """Return what is known of one pod after each look, one every 15 s; at None it does not answer.

    Another pod is there from the beginning, this one from a look on; it is asked from then on, or from later.
    """
    first = came_at if ready_at is None else ready_at
    records, found = EngineRecords(), []
    for number, look in enumerate(looks):
        now_seconds = STEP_SECONDS * number
        present = {OTHER, KEY} if number >= came_at else {OTHER}
        asked = present if number >= first else {OTHER}
        records = records.updated({KEY: look} if look else {}, present, asked=asked, now_seconds=now_seconds)
        found.append(records.reports(now_seconds=now_seconds).get(KEY))
    return found


def interval(*looks: Reading | None, came_at: int = 0, ready_at: int | None = None) -> EngineInterval | None:
    """Return what was counted up to the last look."""
    report = watched(*looks, came_at=came_at, ready_at=ready_at)[-1]
    assert report is not None
    return report.interval


def test_what_was_counted_between_two_answers() -> None:
    """Requests of 100 prompt and 10 answer tokens, 20 ms between two tokens; the queue grew by 4."""
    found = interval(at(0, 50), at(15, 80, waiting=4))

    assert found == EngineInterval(
        seconds=15.0,
        first_tokens=30.0,
        waiting_change=4.0,
        prompt_tokens=3_000.0,
        computed_prompt_tokens=3_000.0,
        generation_tokens=300.0,
        finished=30.0,
        inter_token_seconds=pytest.approx(5.4),  # type: ignore[arg-type]  # stands for one
        inter_tokens=270.0,
    )
    assert found.arrivals == 34.0


def test_a_report_is_the_newest_answer() -> None:
    """With its age, also where the pods' clock is ahead of ours."""
    records = EngineRecords().updated({KEY: at(7, 50, waiting=2)}, {KEY}, asked={KEY}, now_seconds=10.0)

    assert records.reports(now_seconds=30.0) == {
        KEY: EngineReport(age_seconds=23.0, waiting=2, running=3, kv_tokens=160_000)
    }
    assert records.reports(now_seconds=5.0)[KEY].age_seconds == 0.0


def test_a_pod_that_is_gone_is_forgotten() -> None:
    """Nothing is remembered of nobody, nor of one that is no engine of ours."""
    records = EngineRecords().updated(
        {KEY: at(0, 5), ("ns", "stranger"): at(0, 9)}, {KEY, OTHER}, asked={KEY}, now_seconds=0.0
    )

    assert set(records.reports(now_seconds=0.0)) == {KEY}
    assert records.updated({}, {OTHER}, asked=(), now_seconds=15.0).reports(now_seconds=15.0) == {}


@dataclass(frozen=True, kw_only=True)
class First:
    """When a pod comes, becomes ready and first answers, and what that says."""

    looks: tuple[Reading | None, ...]
    came_at: int = 0
    ready_at: int | None = None
    """None: at once."""

    want: tuple[float, float] | None
    """What was finished, and in which time; None where there is nothing to go by."""


FIRST_ANSWERS = {
    "a pod that was there at the first look: it may have counted for days": First(
        looks=(at(0, 50),), want=None
    ),
    "also where it answers later": First(looks=(None, None, at(30, 50)), want=None),
    "also where it becomes ready later": First(looks=(None, None, at(30, 50)), ready_at=2, want=None),
    "a pod that was ready when it came under watch: its variant may be new, and the pod old": First(
        looks=(None, at(15, 50)), came_at=1, want=None
    ),
    "a pod that was not ready when it came: all that it counted is new": First(
        looks=(None, None, at(30, 50)), came_at=1, ready_at=2, want=(50.0, 15.0)
    ),
    "since the look before it was ready, however long it took to start": First(
        looks=(None, None, None, None, at(60, 50)), came_at=1, ready_at=4, want=(50.0, 15.0)
    ),
    "since then also where its first answers failed": First(
        looks=(None, None, None, None, at(60, 50)), came_at=1, ready_at=2, want=(50.0, 45.0)
    ),
    "as much of that time as was over when it answered": First(
        looks=(None, None, at(27, 50)), came_at=1, ready_at=2, want=(50.0, 12.0)
    ),
    "nothing where that was no time at all": First(
        looks=(None, None, at(15.5, 50)), came_at=1, ready_at=2, want=None
    ),
    "nothing where its clock is behind": First(
        looks=(None, None, at(-100, 50)), came_at=1, ready_at=2, want=None
    ),
}


@pytest.mark.parametrize("first", FIRST_ANSWERS.values(), ids=FIRST_ANSWERS.keys())
def test_the_first_answer_of(first: First) -> None:
    """A rate over the time in which the pod can have had requests."""
    found = interval(*first.looks, came_at=first.came_at, ready_at=first.ready_at)

    assert (found and (found.finished, found.seconds)) == first.want
    assert found is None or not found.restarted


def test_the_queue_of_a_new_engine_counts_as_come() -> None:
    """It began without one."""
    found = interval(None, None, at(30, 10, waiting=3), came_at=1, ready_at=2)

    assert found is not None
    assert (found.waiting_change, found.arrivals) == (3.0, 13.0)


def test_a_pod_of_the_name_of_one_that_is_gone_is_a_new_one() -> None:
    """A StatefulSet makes its pods anew by the same names."""
    records = EngineRecords().updated({KEY: at(0, 50)}, {KEY}, asked={KEY}, now_seconds=0.0)
    records = records.updated({}, set(), asked=(), now_seconds=15.0)
    records = records.updated({}, {KEY}, asked=(), now_seconds=30.0)
    records = records.updated({KEY: at(45, 60)}, {KEY}, asked={KEY}, now_seconds=45.0)

    found = records.reports(now_seconds=45.0)[KEY].interval
    assert found is not None
    assert (found.finished, found.seconds) == (60.0, 15.0)


FELL: dict[str, dict[str, float]] = {
    "first tokens": {"first_tokens": 9.0},
    "prompt tokens": {"prompt_tokens": 9.0},
    "generated tokens": {"generation_tokens": 9.0},
    "finished requests": {"finished": 9.0},
    "times between tokens": {"inter_tokens": 9.0},
    "their sum": {"inter_token_seconds": 0.1},
}


@pytest.mark.parametrize("fallen", FELL.values(), ids=FELL.keys())
def test_a_counter_that_fell_belongs_to_a_new_process(fallen: dict[str, Any]) -> None:
    """All of them began anew then: what they say is what was counted since."""
    now = replace(counted(80, prompt_tokens=8_000), **fallen)

    found = interval(at(0, 50), reading(15, now, waiting=2))

    assert found is not None
    assert found.restarted
    assert (found.seconds, found.waiting_change) == (15.0, 2.0)
    assert (found.finished, found.prompt_tokens, found.inter_tokens) == (
        now.finished, now.prompt_tokens, now.inter_tokens,
    )  # fmt: skip


def test_after_a_restart_it_counts_on() -> None:
    """Only the interval in which it fell is about a new process."""
    found = interval(at(0, 50), at(15, 3), at(30, 7))

    assert found is not None
    assert (found.finished, found.restarted) == (4.0, False)


def of_two(time_seconds: float, *requests: float | None, waiting: int = 0) -> Reading:
    """Return what a pod says whose endpoints have finished so many requests; None where one is missing."""
    parts = {
        frozenset({("instance", f"10.0.0.1:{number}")}): Part(
            waiting=waiting, totals=counted(finished, prompt_tokens=100 * finished)
        )
        for number, finished in enumerate(requests)
        if finished is not None
    }
    return replace(reading(time_seconds, counted(0, prompt_tokens=0)), parts=parts, kv_tokens=80 * len(parts))


SEVERAL: dict[str, tuple[tuple[Reading, ...], float | None]] = {
    "what both counted": ((of_two(0, 5000, 900), of_two(15, 5030, 960)), 90.0),
    "nothing while one is missing": ((of_two(0, 5000, 900), of_two(15, None, 960)), None),
    "nothing when it is back: its history is no arrivals": (
        (of_two(0, 5000, 900), of_two(15, None, 960), of_two(30, 5060, 990)), None,
    ),
    "what both counted from then on": (
        (of_two(0, 5000, 900), of_two(15, None, 960), of_two(30, 5060, 990), of_two(45, 5070, 999)), 19.0,
    ),
    "nothing where one is there in place of the other": ((of_two(0, 5000), of_two(15, None, 900)), None),
    "what is left where one has gone for good": (
        (of_two(0, 5000, 900), of_two(15, None, 960), of_two(30, None, 990)), 30.0,
    ),
    "what both counted where one began anew": ((of_two(0, 5000, 900), of_two(15, 5030, 7)), 37.0),
    "also where the sum rose": ((of_two(0, 5000, 4), of_two(15, 5030, 2)), 32.0),
}  # fmt: skip


@pytest.mark.parametrize(("looks", "want"), SEVERAL.values(), ids=SEVERAL.keys())
def test_of_several_endpoints_counts(looks: tuple[Reading, ...], want: float | None) -> None:
    """No endpoint's history is ever taken for the arrivals of one cycle."""
    found = interval(*looks)

    assert (found and (found.finished, found.prompt_tokens, found.seconds)) == (
        want and (want, 100 * want, 15.0)
    )


def test_an_endpoint_that_begins_anew_has_lost_its_queue_alone() -> None:
    """The others' grew or shrank."""
    found = interval(of_two(0, 5000, 900, waiting=10), of_two(15, 5030, 7, waiting=12))

    assert found is not None
    assert (found.waiting_change, found.restarted) == (2.0 + 12.0, True)


def test_an_endpoint_that_missed_a_scrape_has_not_lost_its_cache() -> None:
    """One that stays away has."""
    reports = watched(of_two(0, 5, 9), of_two(15, None, 9), of_two(30, 5, 9), of_two(45, None, 9))
    gone = watched(of_two(0, 5, 9), of_two(15, None, 9), of_two(30, None, 9))

    assert [report and report.kv_tokens for report in reports] == [160, 160, 160, 160]
    assert [report and report.kv_tokens for report in gone] == [160, 160, 80]


OLD_NEWS = {
    "the same answer again: its source has not asked since": at(15, 80),
    "other counters of the same moment": at(15, 90),
    "an answer from before": at(10, 70),
    "no answer": None,
}


@pytest.mark.parametrize("look", OLD_NEWS.values(), ids=OLD_NEWS.keys())
def test_what_is_not_newer_counts_nothing(look: Reading | None) -> None:
    """What was counted is told once; the answer grows older, and counting goes on from it."""
    before, after, last = watched(at(0, 50), at(15, 80), look, at(45, 100))[1:]

    assert before is not None
    assert before.interval is not None
    assert after == replace(before, age_seconds=15.0, interval=None)
    assert last is not None
    assert last.interval is not None
    assert (last.interval.finished, last.interval.seconds) == (20.0, 30.0)


def test_a_pod_that_was_not_ready_for_a_while_keeps_its_record() -> None:
    """Nobody asks it then; its next answer is about all of that time."""
    reports = watched(at(0, 50), None, None, at(45, 80))

    assert [report and report.age_seconds for report in reports] == [0.0, 15.0, 30.0, 0.0]
    assert reports[-1] is not None
    assert reports[-1].interval is not None
    assert (reports[-1].interval.finished, reports[-1].interval.seconds) == (30.0, 45.0)


def test_answers_in_quick_succession_give_no_rate() -> None:
    """A request in a hundredth of a second is no hundred per second; what it counted is not made up for."""
    assert interval(at(0, 50), at(0.01, 51)) is None


@pytest.mark.parametrize(
    ("before", "now", "want"),
    [
        pytest.param(None, None, 3_000.0, id="all prompts where the engine does not tell"),
        pytest.param(1_000.0, 1_700.0, 700.0, id="without what the cache had"),
        pytest.param(None, 700.0, 3_000.0, id="all prompts where it did not tell before"),
        pytest.param(1_000.0, 900.0, 0.0, id="never less than nothing"),
    ],
)
def test_computed_prompt_tokens(before: float | None, now: float | None, want: float) -> None:
    """They cost time; those of the prefix cache don't."""
    first = replace(counted(50, prompt_tokens=5_000), computed_prompt_tokens=before)
    second = replace(counted(80, prompt_tokens=8_000), computed_prompt_tokens=now)

    found = interval(reading(0, first), reading(15, second))

    assert found is not None
    assert (found.prompt_tokens, found.computed_prompt_tokens) == (3_000.0, want)


BOUNDS = (100.0, 1_000.0, math.inf)


@pytest.mark.parametrize(
    ("before", "bounds", "want"),
    [
        pytest.param((4.0, 9.0, 9.0), BOUNDS, (2.0, 7.0, 8.0), id="what came since"),
        pytest.param((), BOUNDS, (6.0, 16.0, 17.0), id="all where nobody told before"),
        pytest.param((4.0, 9.0, 9.0), (50.0, 500.0, math.inf), (6.0, 16.0, 17.0), id="all of other bounds"),
        pytest.param((9.0, 9.0, 9.0), BOUNDS, (0.0, 7.0, 8.0), id="never less than nothing"),
    ],
)
def test_prompt_lengths(
    before: tuple[float, ...], bounds: tuple[float, ...], want: tuple[float, ...]
) -> None:
    """A histogram of the requests of the interval."""
    known = (BOUNDS[: len(before)], before)
    now = (bounds, (6.0, 16.0, 17.0))
    first = replace(counted(50, prompt_tokens=5_000), prompt_lengths=known)
    second = replace(counted(80, prompt_tokens=8_000), prompt_lengths=now)

    found = interval(reading(0, first), reading(15, second))

    assert found is not None
    assert found.prompt_lengths == (bounds, want)
