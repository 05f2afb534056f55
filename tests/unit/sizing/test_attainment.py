"""What engines attain: missed shares by histograms, and the utilization that keeps a promise."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sizing_cycles import interval

from controller.sizing.attainment import (
    AIM,
    NO_EXPERIENCE,
    Attainment,
    Experience,
    Slots,
    above,
    attainment_of,
    record,
    service_level,
    shares,
    within_the_hour,
)
from controller.sizing.records import NO_HISTOGRAM, Histogram, Targets

TARGETS = Targets(ttft_seconds=2.0, itl_seconds=0.08)
TIMES: Histogram = ((1.0, 3.0, math.inf), (60.0, 80.0, 100.0))

SHARES = {
    "a target between two bounds": (TIMES, 2.0, 30.0),
    "a target at a bound": (TIMES, 3.0, 20.0),
    "a target below the first bound": (TIMES, 0.25, 85.0),
    "a target above the last finite bound": (TIMES, 50.0, 20.0),
    "no histogram": (NO_HISTOGRAM, 2.0, 0.0),
    "a histogram without requests": ((TIMES[0], (0.0, 0.0, 0.0)), 2.0, 0.0),
}


@pytest.mark.parametrize("name", SHARES)
def test_requests_above_a_target_are_spread_evenly_within_a_bucket(name: str) -> None:
    """Those in the last bucket are all above."""
    histogram, target, slow = SHARES[name]

    assert above(histogram, target)[0] == pytest.approx(slow)


def test_an_interval_gives_the_requests_that_missed_each_target() -> None:
    """A fifth of the finished requests is slower than 80 ms per token; so it is assumed for those begun."""
    seen = replace(interval(10.0), first_token_times=TIMES, token_times=((0.08, math.inf), (40.0, 50.0)))

    found = attainment_of(seen, TARGETS)

    assert found == Attainment(requests=100.0, missed_ttft=30.0, missed_itl=pytest.approx(20.0))  # type: ignore[arg-type]
    assert found.missed == pytest.approx(100 * (1 - 0.7 * 0.8))


@pytest.mark.parametrize(
    "targets", [Targets(), TARGETS], ids=["without targets", "with targets but without histograms"]
)
def test_without_targets_or_histograms_nothing_is_known_to_be_missed(targets: Targets) -> None:
    """An assumption applies then."""
    assert attainment_of(interval(10.0), targets) == Attainment()


def experience(missed: float, *, at: float, cycles: int = 400, usual: float = 0.5) -> Experience:
    """Return that of cycles with 100 requests, a share of which missed a target at a utilization."""
    found = NO_EXPERIENCE
    for _ in range(cycles):
        seen = Attainment(requests=100.0, missed_ttft=100 * missed)
        found = found.discount().add(seen, utilization=at, usual=usual)
    return found


def test_the_assumed_utilization_applies_without_experience() -> None:
    """It is what keeps the promise by assumption."""
    assert NO_EXPERIENCE.utilization(0.6, 0.05) == pytest.approx(0.6)


def test_the_utilization_is_where_the_missed_share_is_what_is_planned_for() -> None:
    """At half of it, the missed share is lower by two to the power of 2.5."""
    kept = experience(AIM * 0.05, at=0.5).utilization(0.5, 0.05)
    missing = experience(AIM * 0.05 * 2**2.5, at=0.5).utilization(0.5, 0.05)

    assert kept == pytest.approx(0.5)
    assert missing == pytest.approx(0.25, rel=0.02)


def test_requests_that_miss_at_any_utilization_do_not_lower_it() -> None:
    """Prompts that alone take longer than the target are no reason for more replicas."""
    seen = experience(0.1, at=0.5)

    assert seen.utilization(0.5, 0.05, unavoidable=0.1) > seen.utilization(0.5, 0.05)


def test_nights_and_starts_say_little_about_the_planned_utilization() -> None:
    """Far below it hardly a request is late, and far above it every request is."""
    usual = experience(0.05 * AIM, at=0.5)
    night, overload = usual, usual
    for _ in range(20):
        night = night.add(Attainment(requests=100.0), utilization=0.05, usual=0.5)
        overload = overload.add(Attainment(requests=100.0, missed_ttft=100.0), utilization=2.5, usual=0.5)

    before = usual.utilization(0.5, 0.05)
    assert night.utilization(0.5, 0.05) == pytest.approx(before, rel=0.02)
    assert overload.utilization(0.5, 0.05) == pytest.approx(before, rel=0.1)


def test_experience_fades_without_reports() -> None:
    """A variant that missed everything in an overload is tried again some hours later."""
    bad = experience(0.9, at=0.5)
    later = bad
    for _ in range(2400):
        later = later.discount()

    assert bad.utilization(0.6, 0.05) < 0.3
    assert later.utilization(0.6, 0.05) == pytest.approx(0.6, rel=0.02)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.05, 1), st.floats(0.001, 0.5))
def test_a_higher_missed_share_never_raises_the_utilization(
    low: float, more: float, at: float, allowed: float
) -> None:
    """The utilization is monotone in what was missed, and positive."""
    high = min(1.0, low + more)
    less, many = (experience(share, at=at, cycles=20).utilization(0.6, allowed) for share in (low, high))

    assert 0 < many <= less * (1 + 1e-9)


def test_stricter_promises_leave_less_to_the_mean() -> None:
    """A promise of 95 percent lets the mean wait take a third of what the target leaves."""
    found = [round(shares(attainment), 2) for attainment in (0.5, 0.9, 0.95, 0.99)]

    assert found == [0.8, 0.43, 0.33, 0.22]


def test_utilization_continues_from_that_before_a_restart() -> None:
    """It counts as the assumption did, so that new engines are soon reflected."""
    former = Experience(former=0.3)
    measured = Attainment(requests=1e6, missed_ttft=1e6 * AIM * 0.05)

    assert former.utilization(0.6, 0.05) == pytest.approx(0.3)
    learned = former.add(measured, utilization=0.5, usual=0.5)
    assert learned.utilization(0.6, 0.05) == pytest.approx(0.5, rel=0.01)


def test_what_was_attained_is_kept_for_an_hour() -> None:
    """Slots of five minutes are dropped once they began an hour ago."""
    slots: Slots = ()
    for minute in range(180):
        late = 1.0 if minute < 60 else 0.0
        slots = record(slots, [Attainment(requests=1.0, missed_ttft=late)], 60.0 * minute)

    found = service_level(within_the_hour(slots), TARGETS)

    assert found is not None
    assert 55 <= found.attained.requests <= 60
    assert found.share == 1.0


def test_without_targets_there_is_no_service_level() -> None:
    """Nothing was promised. Without requests, nothing was attained."""
    slots = record((), [Attainment(requests=9.0)], 0.0)

    assert service_level(within_the_hour(slots), Targets()) is None
    assert service_level(within_the_hour(record((), [], 0.0)), TARGETS) is None
