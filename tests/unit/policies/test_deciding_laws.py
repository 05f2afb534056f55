"""Properties of every decision, for any policy, history and numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.planning.load import Signal
from controller.policies.deciding import decide
from controller.policies.history import MOST_ENTRIES, Entry, History, read_history
from controller.policies.policy import (
    Bounds,
    MetricObservation,
    Observation,
    PanicRules,
    PodValue,
    PolicyMetric,
    ScalingPolicy,
    StableLimits,
    Value,
)

NAMES = ("m", "n")
SECONDS = st.sampled_from((0.0, 15.0, 30.0, 60.0, 300.0, 1800.0))
LIMITS = st.builds(
    StableLimits,
    instances=st.integers(0, 20),
    percent=st.integers(0, 1000),
    period_seconds=SECONDS,
    select=st.sampled_from(("Or", "And")),
    window_seconds=SECONDS,
)
PANIC = st.builds(
    PanicRules,
    percent=st.integers(0, 1000),
    period_seconds=SECONDS,
    threshold_percent=st.integers(110, 1000),
    hold_seconds=SECONDS,
)
METRICS = st.sets(st.sampled_from(NAMES), min_size=1).map(
    lambda names: tuple(PolicyMetric(name=name, target=10.0) for name in sorted(names))
)
POLICIES = st.builds(
    ScalingPolicy,
    metrics=METRICS,
    tolerance_percent=st.integers(0, 100),
    up=LIMITS,
    down=LIMITS,
    panic=st.none() | PANIC,
)
BOUNDS = st.tuples(st.integers(0, 50), st.integers(1, 50), SECONDS).map(
    lambda drawn: Bounds(min_replicas=min(drawn[:2]), max_replicas=max(drawn[:2]), grace_seconds=drawn[2])
)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
VALUES = st.builds(Value, value=FLOATS, age_seconds=FLOATS)
SEEN = st.builds(
    MetricObservation,
    pods=st.lists(st.builds(PodValue, seen=st.none() | VALUES), max_size=5).map(tuple),
    total=st.none() | VALUES,
)
OBSERVATIONS = st.builds(
    Observation,
    current_replicas=st.integers(0, 60),
    metrics=st.dictionaries(st.sampled_from((*NAMES, "other")), SEEN),
)
NOW = 1_000_000.0


def plain(**members: Any) -> ScalingPolicy:
    """Return a policy with one metric."""
    return ScalingPolicy(metrics=(PolicyMetric(name="m", target=10.0),), **members)


def of_load(load: float, current: int) -> Observation:
    """Return an observation with the same total for every metric."""
    seen = MetricObservation(total=Value(value=load))
    return Observation(current_replicas=current, metrics=dict.fromkeys(NAMES, seen))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a history of half an hour."""
    history, now = History(), NOW - 2000.0
    for _ in range(draw(st.integers(0, 8))):
        now += draw(st.floats(0.0, 400.0))
        history = history.at(now).add_request(now, draw(st.integers(0, 60)))
        history = history.add_recommendation(now, draw(st.integers(0, 60)))
    return history


@given(POLICIES, BOUNDS, histories(), OBSERVATIONS)
def test_bounds_hold_for_any_observation(
    policy: ScalingPolicy, bounds: Bounds, history: History, observation: Observation
) -> None:
    """No float makes a decision fail or exceed its bounds."""
    found = decide(policy, bounds, history, observation, NOW)

    assert bounds.min_replicas <= found.replicas <= bounds.max_replicas


@given(POLICIES, BOUNDS, histories(), OBSERVATIONS)
def test_a_repeated_decision_is_the_same(
    policy: ScalingPolicy, bounds: Bounds, history: History, observation: Observation
) -> None:
    """It has the same time, and the history of the first decision."""
    first = decide(policy, bounds, history, observation, NOW)
    second = decide(policy, bounds, first.history, observation, NOW)

    assert (second.replicas, second.limits) == (first.replicas, first.limits)
    assert second.history == first.history


@given(POLICIES, BOUNDS, histories(), st.integers(0, 60), st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)))
def test_more_load_never_leads_to_fewer_replicas(
    policy: ScalingPolicy, bounds: Bounds, history: History, current: int, loads: tuple[float, float]
) -> None:
    """A panic policy with a period is excluded: it can be slower, which causes a warning at admission."""
    assume(policy.panic is None or policy.panic.period_seconds == 0)
    low, high = sorted(loads)

    less = decide(policy, bounds, history, of_load(low, current), NOW).replicas
    more = decide(policy, bounds, history, of_load(high, current), NOW).replicas

    assert less <= more


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.integers(0, 12),
    st.floats(0, 50),
)
def test_more_load_of_pods_never_leads_to_fewer_replicas(
    loads: list[float], silent: list[bool], current: int, more: float
) -> None:
    """Some pods may be silent, and some not ready."""
    free = StableLimits(period_seconds=0.0)
    policy = plain(tolerance_percent=0, up=free, down=free)
    found = []
    for extra in (0.0, more):
        pods = tuple(
            PodValue(seen=None if mute else Value(value=load + extra))
            for load, mute in zip(loads, silent, strict=False)
        )
        seen = Observation(current_replicas=current, metrics={"m": MetricObservation(pods=pods)})
        history = History(silent={"m": NOW - 10_000})
        found.append(decide(policy, Bounds(min_replicas=0, max_replicas=1000), history, seen, NOW).replicas)

    assert found[0] <= found[1]


@given(st.lists(st.tuples(st.floats(1.0, 60.0), st.floats(0, 2000)), min_size=1, max_size=60), LIMITS, LIMITS)
def test_no_rate_is_exceeded_within_any_period(
    steps: list[tuple[float, float]], up: StableLimits, down: StableLimits
) -> None:
    """It is checked between any two times that are less than a period apart."""
    policy = plain(tolerance_percent=0, up=up, down=down)
    history, now, current, course = History(), NOW, 10, [(NOW - 1, 10)]
    for seconds, load in steps:
        now += seconds
        found = decide(
            policy, Bounds(min_replicas=0, max_replicas=10**6), history, of_load(load, current), now
        )
        history, current = found.history, found.replicas
        course.append((now, current))

    for place, (later, count) in enumerate(course):
        for earlier, before in course[:place]:
            if later - earlier < up.period_seconds:
                assert count - before <= _reach(up, before, up=True)
            if later - earlier < down.period_seconds:
                assert before - count <= _reach(down, before, up=False)


def _reach(limits: StableLimits, before: int, *, up: bool) -> int:
    percent = before * limits.percent // 100 if before or not up else min(1, limits.percent)
    return (max if limits.select == "Or" else min)(limits.instances, percent)


@given(POLICIES, histories(), st.integers(1, 50), st.floats(0, 1e5))
def test_an_unknown_metric_prevents_scaling_down(
    policy: ScalingPolicy, history: History, current: int, load: float
) -> None:
    """The other metric can still lead to more replicas."""
    assume(len(policy.metrics) > 1)
    seen = Observation(current_replicas=current, metrics={"m": MetricObservation(total=Value(value=load))})
    found = decide(policy, Bounds(min_replicas=0, max_replicas=10**6), history, seen, NOW)

    assert found.replicas >= current
    assert [asked.signal for asked in found.recommendations] == [Signal.FRESH, Signal.UNKNOWN]


@given(POLICIES, histories(), st.integers(0, 50), st.floats(0, 1e5))
def test_panic_mode_prevents_scaling_down(
    policy: ScalingPolicy, history: History, current: int, load: float
) -> None:
    """This holds for any load."""
    assume(policy.panic is not None)
    history = replace(history, panic_since_seconds=NOW - 5, panic_until_seconds=NOW + 5)
    found = decide(policy, Bounds(min_replicas=0, max_replicas=10**6), history, of_load(load, current), NOW)

    assert found.replicas >= current


def test_an_invalid_metric_value_does_not_count_as_zero() -> None:
    """NaN, infinity and negative values change nothing; a sum beyond floats scales up within the limits."""
    policy = ScalingPolicy(metrics=(PolicyMetric(name="m", target=1e-9),), tolerance_percent=0)
    bounds = Bounds(min_replicas=0, max_replicas=100)
    for value in (math.nan, math.inf, -math.inf, -1.0):
        assert decide(policy, bounds, History(), of_load(value, 7), NOW).replicas == 7
    pods = tuple(PodValue(seen=Value(value=1.7e308)) for _ in range(3))
    seen = Observation(current_replicas=7, metrics={"m": MetricObservation(pods=pods)})
    assert decide(policy, bounds, History(), seen, NOW).replicas == 14


def test_a_total_is_needed_to_scale_from_zero() -> None:
    """There is no pod with a metric, and the decision says so."""
    policy = plain()
    bounds = Bounds(min_replicas=0, max_replicas=9)
    asleep = decide(policy, bounds, History(), Observation(current_replicas=0), NOW)
    awake = decide(policy, bounds, asleep.history, of_load(15.0, 0), NOW + 15.0)

    assert (asleep.replicas, asleep.steps[0].detail) == (0, "at 0 replicas, no pod reports any metric")
    assert awake.replicas == 1
    assert decide(policy, bounds, awake.history, of_load(15.0, 1), NOW + 30.0).replicas == 2


def test_the_size_of_a_history_is_bounded() -> None:
    """Long noise does not enlarge it."""
    history = History()
    for number in range(5000):
        now = NOW + number * 5.0
        history = history.at(now).add_request(now, number % 7).add_recommendation(now, (number * 7919) % 101)

    lengths = {len(history.highs), len(history.lows), len(history.peaks), len(history.dips)}
    assert max(lengths) <= MOST_ENTRIES
    assert len(history.document()) < 5000
    assert history.highest(now, 1800.0) == 100
    assert (history.fewest(now, 1800.0), history.most(now, 1800.0)) == (0, 6)
    assert history.dips[-1] == Entry(now, 4999 % 7)


@pytest.mark.parametrize(("first", "change", "want"), [(10, 1, 80), (200, -1, 130)])
def test_many_small_steps_do_not_exceed_a_limit(first: int, change: int, want: int) -> None:
    """One replica changes per cycle, so a period has more steps than the history has entries."""
    limits = StableLimits(instances=70, percent=0, period_seconds=1800.0)
    policy = plain(tolerance_percent=0, up=limits, down=limits)
    bounds, history, current = Bounds(min_replicas=0, max_replicas=1000), History(), first
    course = []
    for number in range(600):
        load = 10.0 * (first + change * (number + 1))
        found = decide(policy, bounds, history, of_load(max(0.0, load), current), NOW + 15.0 * number)
        history, current = read_history(found.history.document()), found.replicas
        course.append(current)

    assert course[119] == want
    for place, count in enumerate(course):
        assert abs(count - course[max(0, place - 119)]) <= 70
    assert abs(course[-1] - first) >= min(first, 4 * 70)


@given(
    st.lists(st.tuples(st.floats(0.1, 60.0), st.integers(0, 300)), min_size=1, max_size=200),
    st.floats(0.0, 1800.0),
    st.sampled_from((0, 1, -1)),
)
def test_dropped_entries_of_a_history_only_make_limits_stricter(
    steps: list[tuple[float, int]], period: float, slope: int
) -> None:
    """The maximum is never too small and the minimum never too large; both are exact if all entries fit."""
    history, now, course = History(), NOW, []
    for number, (seconds, noise) in enumerate(steps):
        now += seconds
        count = 300 + slope * number if slope else noise
        history = history.at(now).add_request(now, count)
        course.append((now, count))
    before = [count for moment, count in course if moment <= now - period][-1:]
    true = [*before, *(count for moment, count in course if moment > now - period)]
    fewest, most = history.fewest(now, period), history.most(now, period)

    assert fewest is not None
    assert most is not None
    assert fewest <= min(true) <= max(true) <= most
    if len(steps) <= MOST_ENTRIES:
        assert (fewest, most) == (min(true), max(true))


def test_time_without_metrics_does_not_count_as_idle() -> None:
    """After a long silence a replica is not removed at its first report, even if that is zero."""
    policy = plain(down=StableLimits())
    bounds = Bounds(min_replicas=0, max_replicas=9, grace_seconds=600.0)
    busy, idle = ({"m": MetricObservation(pods=(PodValue(seen=Value(value=v)),))} for v in (10.0, 0.0))
    silent = {"m": MetricObservation(pods=(PodValue(seen=None),))}
    history, found = History(), []
    for minute in range(40):
        metrics = busy if minute == 0 else silent if minute <= 15 else idle
        seen = Observation(current_replicas=1, metrics=metrics)
        decision = decide(policy, bounds, history, seen, NOW + 60.0 * minute)
        history = decision.history
        found.append(decision.replicas)

    assert found.index(0) == 16 + 10 - 1


def test_a_replica_that_was_just_started_is_kept_for_the_grace_period() -> None:
    """A user may have scaled up from zero, and not sent a request yet."""
    policy = plain(down=StableLimits())
    bounds = Bounds(min_replicas=0, max_replicas=9, grace_seconds=600.0)
    history = History(active_seconds=NOW - 3600.0)
    for minute in range(5):
        seen = Observation(current_replicas=0)
        history = decide(policy, bounds, history, seen, NOW + 60.0 * minute).history
    idle = Observation(
        current_replicas=1, metrics={"m": MetricObservation(pods=(PodValue(seen=Value(value=0.0)),))}
    )

    assert decide(policy, bounds, history, idle, NOW + 300.0).replicas == 1
