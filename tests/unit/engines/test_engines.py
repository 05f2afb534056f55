"""Records of engines, and the counter increases between two of their readings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.engine_totals import alone, counted

from controller.engines.readings import EndpointReading, Reading, Totals
from controller.engines.records import EngineRecords
from controller.sizing.records import EngineInterval, EngineReport

KEY, OTHER = ("ns", "pod"), ("ns", "other")
STEP_SECONDS = 15.0


def reading(time_seconds: float, totals: Totals, *, waiting: int = 0, **changes: Any) -> Reading:
    """Return a reading of an engine at a moment."""
    fields: dict[str, Any] = {
        "time_seconds": time_seconds,
        "running": 3,
        "kv_tokens": 160_000,
        "parts": alone(totals, waiting=waiting),
        "model_names": frozenset(),
    }
    return Reading(**fields | changes)


def at(time_seconds: float, requests: float, *, waiting: int = 0, **changes: Any) -> Reading:
    """Return a reading of an engine that has finished some requests of 100 prompt and 10 output tokens."""
    return reading(time_seconds, counted(requests, prompt_tokens=100 * requests), waiting=waiting, **changes)


def watched(
    *looks: Reading | None, came_at: int = 0, ready_at: int | None = None
) -> list[EngineReport | None]:
    """Return the report on one pod after each reading, one every 15 s; None: the scrape failed.

    Another pod exists from the beginning, this one from reading `came_at` on. It is scraped from `ready_at`
    on, by default from `came_at` on.
    """
    first = came_at if ready_at is None else ready_at
    records, found = EngineRecords(), []
    for number, look in enumerate(looks):
        now_seconds = STEP_SECONDS * number
        present = {OTHER, KEY} if number >= came_at else {OTHER}
        asked = present if number >= first else {OTHER}
        records = records.update(
            {KEY: look} if look else {}, present, scraped_keys=asked, now_seconds=now_seconds
        )
        found.append(records.reports(now_seconds=now_seconds).get(KEY))
    return found


def interval(*looks: Reading | None, came_at: int = 0, ready_at: int | None = None) -> EngineInterval | None:
    """Return the interval up to the last reading."""
    report = watched(*looks, came_at=came_at, ready_at=ready_at)[-1]
    assert report is not None
    return report.interval


def test_an_interval_holds_the_counter_increases_between_two_readings() -> None:
    """Requests have 100 prompt and 10 output tokens, 20 ms between two tokens; the queue grew by 4."""
    found = interval(at(0, 50), at(15, 80, waiting=4))

    assert found == EngineInterval(
        seconds=15.0,
        first_tokens=30.0,
        first_token_seconds=pytest.approx(6.0),  # type: ignore[arg-type]  # compares as a float
        waiting_change=4.0,
        prompt_tokens=3_000.0,
        examined_prompt_tokens=0.0,
        computed_prompt_tokens=0.0,
        generation_tokens=300.0,
        begun=30.0,
        finished=30.0,
        ended=30.0,
        inter_token_seconds=pytest.approx(5.4),  # type: ignore[arg-type]  # compares as a float
        inter_tokens=270.0,
    )
    assert found.arrivals == 34.0


def test_a_report_gives_the_newest_reading_and_its_age() -> None:
    """The age is not negative if the pod's clock is ahead."""
    records = EngineRecords().update({KEY: at(7, 50, waiting=2)}, {KEY}, scraped_keys={KEY}, now_seconds=10.0)

    assert records.reports(now_seconds=30.0) == {
        KEY: EngineReport(age_seconds=23.0, waiting=2, running=3, kv_tokens=160_000)
    }
    assert records.reports(now_seconds=5.0)[KEY].age_seconds == 0.0


def test_only_pods_that_are_present_and_scraped_have_records() -> None:
    """The record of a deleted pod is removed, and a reading of a pod that is not scraped is ignored."""
    records = EngineRecords().update(
        {KEY: at(0, 5), ("ns", "stranger"): at(0, 9)}, {KEY, OTHER}, scraped_keys={KEY}, now_seconds=0.0
    )

    assert set(records.reports(now_seconds=0.0)) == {KEY}
    assert records.update({}, {OTHER}, scraped_keys=(), now_seconds=15.0).reports(now_seconds=15.0) == {}


@dataclass(frozen=True, kw_only=True)
class First:
    """When a pod appears, becomes ready and first returns metrics, and what is expected of that reading."""

    looks: tuple[Reading | None, ...]
    came_at: int = 0
    ready_at: int | None = None
    """None: when it appears."""

    want: tuple[float, float] | None
    """Finished requests and seconds of the interval; None: no interval."""


FIRST_ANSWERS = {
    "a pod that existed at the first reading may have counted for days": First(looks=(at(0, 50),), want=None),
    "a pod that existed at the first reading and returns metrics later": First(
        looks=(None, None, at(30, 50)), want=None
    ),
    "a pod that existed at the first reading and becomes ready later": First(
        looks=(None, None, at(30, 50)), ready_at=2, want=None
    ),
    "a pod that was ready when it appeared may be old and only its variant new": First(
        looks=(None, at(15, 50)), came_at=1, want=None
    ),
    "all counts are new for a pod that was not ready when it appeared": First(
        looks=(None, None, at(30, 50)), came_at=1, ready_at=2, want=(50.0, 15.0)
    ),
    "time starts at the reading before readiness, however long the start took": First(
        looks=(None, None, None, None, at(60, 50)), came_at=1, ready_at=4, want=(50.0, 15.0)
    ),
    "time starts there too if the first scrapes failed": First(
        looks=(None, None, None, None, at(60, 50)), came_at=1, ready_at=2, want=(50.0, 45.0)
    ),
    "time ends when the reading was taken": First(
        looks=(None, None, at(27, 50)), came_at=1, ready_at=2, want=(50.0, 12.0)
    ),
    "no interval if that time is too short": First(
        looks=(None, None, at(15.5, 50)), came_at=1, ready_at=2, want=None
    ),
    "no interval if the pod's clock is behind": First(
        looks=(None, None, at(-100, 50)), came_at=1, ready_at=2, want=None
    ),
}


@pytest.mark.parametrize("first", FIRST_ANSWERS.values(), ids=FIRST_ANSWERS.keys())
def test_the_first_interval_covers_the_time_in_which_the_pod_can_have_had_requests(first: First) -> None:
    """If the start of that time is unknown, there is no interval."""
    found = interval(*first.looks, came_at=first.came_at, ready_at=first.ready_at)

    assert (found and (found.ended, found.seconds)) == first.want


def test_the_queue_of_a_new_engine_counts_as_arrivals() -> None:
    """The engine started with an empty queue."""
    found = interval(None, None, at(30, 10, waiting=3), came_at=1, ready_at=2)

    assert found is not None
    assert (found.waiting_change, found.arrivals) == (3.0, 13.0)


def test_a_recreated_pod_with_the_name_of_a_deleted_pod_is_a_new_engine() -> None:
    """A StatefulSet recreates its pods with the same names."""
    records = EngineRecords().update({KEY: at(0, 50)}, {KEY}, scraped_keys={KEY}, now_seconds=0.0)
    records = records.update({}, set(), scraped_keys=(), now_seconds=15.0)
    records = records.update({}, {KEY}, scraped_keys=(), now_seconds=30.0)
    records = records.update({KEY: at(45, 60)}, {KEY}, scraped_keys={KEY}, now_seconds=45.0)

    found = records.reports(now_seconds=45.0)[KEY].interval
    assert found is not None
    assert (found.ended, found.seconds) == (60.0, 15.0)


FELL: dict[str, dict[str, float]] = {
    "first tokens": {"first_tokens": 9.0},
    "prompt tokens": {"prompt_tokens": 9.0},
    "generated tokens": {"generation_tokens": 9.0},
    "finished requests": {"finished": 9.0},
    "the sum of times between tokens": {"inter_token_seconds": 0.1},
}


@pytest.mark.parametrize("fallen", FELL.values(), ids=FELL.keys())
def test_a_counter_that_decreased_indicates_a_restart(fallen: dict[str, Any]) -> None:
    """All counters restarted at zero, so their values are the increases since then."""
    now = replace(counted(80, prompt_tokens=8_000), **fallen)

    found = interval(at(0, 50), reading(15, now, waiting=2))

    assert found is not None
    assert (found.seconds, found.waiting_change) == (15.0, 2.0)
    assert (found.ended, found.prompt_tokens, found.inter_tokens) == (
        now.ended, now.prompt_tokens, now.inter_tokens,
    )  # fmt: skip


def test_the_interval_after_a_restart_is_a_normal_one() -> None:
    """The counters of the new process are compared with its own earlier ones."""
    found = interval(at(0, 50), at(15, 3), at(30, 7))

    assert found is not None
    assert found.ended == 4.0


def of_two(time_seconds: float, *requests: float | None, waiting: int = 0) -> Reading:
    """Return a reading of a pod by the finished requests of each endpoint; None: the endpoint is missing."""
    parts = {
        frozenset({("instance", f"10.0.0.1:{number}")}): EndpointReading(
            waiting=waiting, totals=counted(finished, prompt_tokens=100 * finished)
        )
        for number, finished in enumerate(requests)
        if finished is not None
    }
    one = reading(time_seconds, counted(0, prompt_tokens=0))
    return replace(one, parts=parts, kv_tokens=80 * len(parts), engines=len(parts))


SEVERAL: dict[str, tuple[tuple[Reading, ...], float | None]] = {
    "the increases of both endpoints": ((of_two(0, 5000, 900), of_two(15, 5030, 960)), 90.0),
    "no interval while one endpoint is missing": ((of_two(0, 5000, 900), of_two(15, None, 960)), None),
    "no interval when it returns: its history is not arrivals": (
        (of_two(0, 5000, 900), of_two(15, None, 960), of_two(30, 5060, 990)), None,
    ),
    "the increases of both endpoints after it has returned": (
        (of_two(0, 5000, 900), of_two(15, None, 960), of_two(30, 5060, 990), of_two(45, 5070, 999)), 19.0,
    ),
    "no interval if one endpoint replaced the other": ((of_two(0, 5000), of_two(15, None, 900)), None),
    "the remaining endpoint if the other stays away": (
        (of_two(0, 5000, 900), of_two(15, None, 960), of_two(30, None, 990)), 30.0,
    ),
    "both endpoints if one restarted": ((of_two(0, 5000, 900), of_two(15, 5030, 7)), 37.0),
    "both if one restarted and the sum increased": ((of_two(0, 5000, 4), of_two(15, 5030, 2)), 32.0),
}  # fmt: skip


@pytest.mark.parametrize(("looks", "want"), SEVERAL.values(), ids=SEVERAL.keys())
def test_counts_of_several_endpoints_of_a_pod_are_summed_to_one_interval(
    looks: tuple[Reading, ...], want: float | None
) -> None:
    """An endpoint's history is never taken for the arrivals of one cycle."""
    found = interval(*looks)

    assert (found and (found.ended, found.prompt_tokens, found.seconds)) == (
        want and (want, 100 * want, 15.0)
    )


def test_the_restart_of_one_endpoint_discards_only_its_own_queue() -> None:
    """The queue change of the other endpoint is still counted."""
    found = interval(of_two(0, 5000, 900, waiting=10), of_two(15, 5030, 7, waiting=12))

    assert found is not None
    assert found.waiting_change == 2.0 + 12.0


def test_the_cache_and_the_engine_of_an_endpoint_are_kept_for_one_missed_scrape() -> None:
    """Those of an endpoint that misses two scrapes are no longer counted."""
    reports = watched(of_two(0, 5, 9), of_two(15, None, 9), of_two(30, 5, 9), of_two(45, None, 9))
    gone = watched(of_two(0, 5, 9), of_two(15, None, 9), of_two(30, None, 9))

    assert [report and report.kv_tokens for report in reports] == [160, 160, 160, 160]
    assert [report and report.kv_tokens for report in gone] == [160, 160, 80]
    assert [report and report.engines for report in reports] == [2, 2, 2, 2]
    assert [report and report.engines for report in gone] == [2, 2, 1]


OLD_NEWS = {
    "the same reading again: its source has not scraped since": at(15, 80),
    "other counters with the same time": at(15, 90),
    "an older reading": at(10, 70),
    "no reading": None,
}


@pytest.mark.parametrize("look", OLD_NEWS.values(), ids=OLD_NEWS.keys())
def test_a_reading_that_is_not_newer_gives_no_interval(look: Reading | None) -> None:
    """The report keeps its content and its age grows; the next interval starts at the last newer reading."""
    before, after, last = watched(at(0, 50), at(15, 80), look, at(45, 100))[1:]

    assert before is not None
    assert before.interval is not None
    assert after == replace(before, age_seconds=15.0, interval=None)
    assert last is not None
    assert last.interval is not None
    assert (last.interval.ended, last.interval.seconds) == (20.0, 30.0)


def test_a_pod_that_was_not_ready_for_a_while_keeps_its_record() -> None:
    """It is not scraped meanwhile; the interval of its next reading covers all of that time."""
    reports = watched(at(0, 50), None, None, at(45, 80))

    assert [report and report.age_seconds for report in reports] == [0.0, 15.0, 30.0, 0.0]
    assert reports[-1] is not None
    assert reports[-1].interval is not None
    assert (reports[-1].interval.ended, reports[-1].interval.seconds) == (30.0, 45.0)


def test_readings_in_quick_succession_give_no_interval() -> None:
    """One request in 0.01 s is no rate of 100 requests per second."""
    assert interval(at(0, 50), at(0.01, 51)) is None


@pytest.mark.parametrize(
    ("before", "now", "want"),
    [
        pytest.param((None, None), (None, None), (0.0, 0.0), id="nothing without such counters"),
        pytest.param((4_000.0, 1_000.0), (6_000.0, 1_700.0), (2_000.0, 700.0), id="without cached tokens"),
        pytest.param((None, None), (6_000.0, 700.0), (0.0, 0.0), id="nothing in the first reading with them"),
        pytest.param((4_000.0, 1_000.0), (6_000.0, 900.0), (2_000.0, 0.0), id="none after a decrease"),
    ],
)
def test_computed_prompt_tokens_exclude_cached_ones(
    before: tuple[float | None, float | None],
    now: tuple[float | None, float | None],
    want: tuple[float, float],
) -> None:
    """They are those of finished requests."""
    first, second = (
        replace(
            counted(requests, prompt_tokens=100 * requests),
            examined_prompt_tokens=examined,
            computed_prompt_tokens=computed,
        )
        for requests, (examined, computed) in ((50, before), (80, now))
    )

    found = interval(reading(0, first), reading(15, second))

    assert found is not None
    assert (found.examined_prompt_tokens, found.computed_prompt_tokens) == want


BOUNDS = (100.0, 1_000.0, math.inf)


@pytest.mark.parametrize(
    ("before", "bounds", "want"),
    [
        pytest.param((4.0, 9.0, 9.0), BOUNDS, (2.0, 7.0, 8.0), id="the increase since the earlier reading"),
        pytest.param((), BOUNDS, (6.0, 16.0, 17.0), id="all counts if the earlier reading has no histogram"),
        pytest.param((4.0, 9.0, 9.0), (50.0, 500.0, math.inf), (), id="no counts if the bounds changed"),
        pytest.param((9.0, 9.0, 9.0), BOUNDS, (0.0, 7.0, 8.0), id="never negative"),
    ],
)
def test_an_interval_has_a_histogram_of_prompt_lengths(
    before: tuple[float, ...], bounds: tuple[float, ...], want: tuple[float, ...]
) -> None:
    """It is the increase between the two readings, if their bounds agree."""
    known = (BOUNDS[: len(before)], before)
    now = (bounds, (6.0, 16.0, 17.0))
    first = replace(counted(50, prompt_tokens=5_000), prompt_lengths=known)
    second = replace(counted(80, prompt_tokens=8_000), prompt_lengths=now)

    found = interval(reading(0, first), reading(15, second))

    assert found is not None
    assert found.prompt_lengths == (bounds[: len(want)], want)
