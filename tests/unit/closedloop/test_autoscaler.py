"""The HorizontalPodAutoscaler in virtual time against cases worked out by the real controller's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.closedloop.autoscaler import Autoscaler
from controller.closedloop.behaviour import (
    DEFAULT_BEHAVIOUR,
    Behaviour,
    Direction,
    Pace,
    as_behaviour,
    behaviour_of,
)

EAGER = Direction(window_seconds=0, paces=(Pace(type="Percent", value=900), Pace(type="Pods", value=100)))


def autoscaler(
    behaviour: Behaviour = DEFAULT_BEHAVIOUR, *, low: int = 1, high: int = 100, average: float = 10.0
) -> Autoscaler:
    """Make one that wants 10 of the metric per replica."""
    return Autoscaler(behaviour=behaviour, min_replicas=low, max_replicas=high, target_average=average)


@pytest.mark.parametrize(
    ("replicas", "metric", "expected"),
    [
        pytest.param(4, 40.0, 4, id="a metric on target changes nothing"),
        pytest.param(4, 44.0, 4, id="10 percent above the target is within the tolerance"),
        pytest.param(4, 44.1, 5, id="more than 10 percent above is not, and rounds up"),
        pytest.param(4, 36.0, 4, id="10 percent below is within the tolerance"),
        pytest.param(4, 35.9, 4, id="more than 10 percent below still rounds up to what there is"),
        pytest.param(4, None, 4, id="a metric that is not available holds"),
        pytest.param(1, 500.0, 5, id="from one replica the four pods allow more than the hundred percent"),
        pytest.param(10, 500.0, 20, id="from ten replicas the hundred percent allow more than the four pods"),
        pytest.param(120, 40.0, 100, id="more replicas than the maximum are cut at once"),
        pytest.param(90, 5000.0, 100, id="the maximum bounds what is proposed"),
        pytest.param(0, 500.0, 0, id="somebody else's zero is left alone"),
    ],
)
def test_first_sync(replicas: int, metric: float | None, expected: int) -> None:
    """One look, with nothing remembered but the replicas of the beginning."""
    assert autoscaler().sync(0.0, replicas=replicas, pods=replicas, metric=metric) == expected


def test_fewer_replicas_than_the_minimum_are_raised_whatever_the_metric_says() -> None:
    """As after somebody scaled by hand."""
    assert autoscaler(low=3).sync(0.0, replicas=1, pods=1, metric=None) == 3


def test_scale_down_waits_for_the_window_since_the_replicas_of_the_start_count_as_recommended() -> None:
    """Ten at the start, two wanted at once: 300 s pass before the ten are forgotten."""
    scaler, replicas, course = autoscaler(), 10, []
    for tick in range(23):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=20.0)
        course.append(replicas)

    assert course[:20] == [10] * 20
    assert course[20] == 2


def test_scale_down_goes_to_the_greatest_recommendation_within_the_window() -> None:
    """What was wanted within the last 300 s bounds the step down."""
    scaler, replicas = autoscaler(), 10
    for tick, metric in enumerate([100.0] * 4 + [60.0] * 10 + [20.0] * 10):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=metric)

    assert replicas == 6


def test_a_window_for_scale_up_takes_the_least_recommendation_within_it() -> None:
    """A spike shorter than the window starts nothing."""
    behaviour = replace(DEFAULT_BEHAVIOUR, up=replace(DEFAULT_BEHAVIOUR.up, window_seconds=60))
    scaler, replicas, course = autoscaler(behaviour), 2, []
    for tick, metric in enumerate([20.0, 90.0, 90.0, 20.0, 90.0, 90.0, 90.0, 90.0, 90.0]):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=metric)
        course.append(replicas)

    assert course == [2, 2, 2, 2, 2, 2, 2, 6, 9]


@pytest.mark.parametrize(
    ("select", "expected"), [("Max", 16), ("Min", 14), ("Disabled", 10)], ids=["most", "least", "none"]
)
def test_which_policy_counts(select: str, expected: int) -> None:
    """Sixty percent of ten are six, which is more than four pods."""
    up = Direction(
        window_seconds=0,
        paces=(Pace(type="Percent", value=60), Pace(type="Pods", value=4)),
        select=select,  # type: ignore[arg-type] # one of three words
    )
    scaler = autoscaler(replace(DEFAULT_BEHAVIOUR, up=up))

    assert scaler.sync(0.0, replicas=10, pods=10, metric=900.0) == expected


def test_a_rate_counts_from_what_there_was_at_the_start_of_its_period() -> None:
    """Two pods per minute: two at once, and no more until a minute has passed."""
    up = Direction(window_seconds=0, paces=(Pace(type="Pods", value=2, period_seconds=60),))
    scaler, replicas, course = autoscaler(replace(DEFAULT_BEHAVIOUR, up=up)), 1, []
    for tick in range(6):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=900.0)
        course.append(replicas)

    assert course == [3, 3, 3, 3, 5, 5]


def test_a_rate_down_bounds_each_step() -> None:
    """A tenth per 15 s, rounded as the controller does: what stays is cut to a whole number."""
    down = Direction(window_seconds=0, paces=(Pace(type="Percent", value=10),))
    scaler, replicas, course = autoscaler(replace(DEFAULT_BEHAVIOUR, down=down)), 25, []
    for tick in range(3):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=10.0)
        course.append(replicas)

    assert course == [22, 19, 17]


def test_what_it_scaled_to_zero_itself_it_wakes_again() -> None:
    """With a minimum of 0."""
    scaler = autoscaler(Behaviour(up=EAGER, down=EAGER), low=0)

    assert scaler.sync(0.0, replicas=2, pods=2, metric=0.0) == 0
    assert scaler.sync(15.0, replicas=0, pods=0, metric=0.0) == 0
    assert scaler.sync(30.0, replicas=0, pods=0, metric=25.0) == 3


def test_tolerance_is_told_apart_by_direction() -> None:
    """None for down, half for up."""
    behaviour = Behaviour(up=replace(EAGER, tolerance=0.5), down=replace(EAGER, tolerance=0.0))

    assert autoscaler(behaviour).sync(0.0, replicas=20, pods=20, metric=290.0) == 20
    assert autoscaler(behaviour).sync(0.0, replicas=20, pods=20, metric=190.0) == 19


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 5000)), max_size=60),
    st.integers(0, 20),
    st.integers(0, 5),
    st.integers(5, 40),
)
def test_replicas_stay_within_the_bounds(
    metrics: list[float | None], start: int, low: int, high: int
) -> None:
    """Whatever the metric, from the second look on; 0 only where it is allowed, or somebody else's."""
    scaler, replicas = autoscaler(low=low, high=high), start
    for tick, metric in enumerate(metrics):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=metric)
        assert replicas <= high
        assert replicas >= low or (start == 0 and replicas == 0)


def test_behaviour_is_read_as_kubernetes_completes_it() -> None:
    """What is left out has Kubernetes' own defaults, direction by direction."""
    spec = {
        "behavior": {
            "scaleUp": {"tolerance": "50m", "policies": [{"type": "Pods", "value": 7, "periodSeconds": 30}]},
            "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min"},
        }
    }

    read = behaviour_of(spec)

    assert read.up == Direction(
        window_seconds=0, paces=(Pace(type="Pods", value=7, period_seconds=30),), tolerance=0.05
    )
    assert read.down == replace(DEFAULT_BEHAVIOUR.down, window_seconds=0, select="Min")
    assert behaviour_of({}) == DEFAULT_BEHAVIOUR
    assert behaviour_of({"behavior": as_behaviour(read)}) == read
