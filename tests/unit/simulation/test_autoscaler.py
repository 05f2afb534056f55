"""The simulated HorizontalPodAutoscaler, compared with cases computed by the rules of the real controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.autoscaler import (
    DEFAULT_BEHAVIOUR,
    Behaviour,
    ScalingPace,
    ScalingRules,
    SimulatedAutoscaler,
    as_behaviour,
    behaviour_of,
)

EAGER = ScalingRules(
    window_seconds=0, paces=(ScalingPace(type="Percent", value=900), ScalingPace(type="Pods", value=100))
)


def autoscaler(
    behaviour: Behaviour = DEFAULT_BEHAVIOUR, *, low: int = 1, high: int = 100, average: float = 10.0
) -> SimulatedAutoscaler:
    """Return an autoscaler with a target of 10 per replica."""
    return SimulatedAutoscaler(
        behaviour=behaviour, min_replicas=low, max_replicas=high, target_average=average
    )


def course(scaler: SimulatedAutoscaler, replicas: int, metrics: Sequence[float | None]) -> list[int]:
    """Return the replicas after each sync, every 15 s, all of which are ready."""
    found = []
    for tick, metric in enumerate(metrics):
        replicas = scaler.sync(15.0 * tick, replicas=replicas, pods=replicas, metric=metric)
        found.append(replicas)
    return found


@pytest.mark.parametrize(
    ("replicas", "metric", "expected"),
    [
        pytest.param(4, 40.0, 4, id="a metric on target changes nothing"),
        pytest.param(4, 44.0, 4, id="10 percent above the target is within the tolerance"),
        pytest.param(4, 44.1, 5, id="more than 10 percent above the target scales up, rounded up"),
        pytest.param(4, 36.0, 4, id="10 percent below the target is within the tolerance"),
        pytest.param(
            4, 35.9, 4, id="more than 10 percent below the target is rounded up to the current number"
        ),
        pytest.param(4, None, 4, id="without the metric, nothing changes"),
        pytest.param(1, 500.0, 5, id="from one replica, four pods are more than 100 percent"),
        pytest.param(10, 500.0, 20, id="from ten replicas, 100 percent are more than four pods"),
        pytest.param(120, 40.0, 100, id="replicas above the maximum are removed at once"),
        pytest.param(90, 5000.0, 100, id="the maximum limits the recommendation"),
        pytest.param(0, 500.0, 0, id="a scale of zero set by someone else is kept"),
    ],
)
def test_first_sync_after_start(replicas: int, metric: float | None, expected: int) -> None:
    """The history contains only the initial replicas."""
    assert autoscaler().sync(0.0, replicas=replicas, pods=replicas, metric=metric) == expected


def test_replicas_are_raised_to_the_minimum_whatever_the_metric() -> None:
    """They can be below it after manual scaling."""
    assert autoscaler(low=3).sync(0.0, replicas=1, pods=1, metric=None) == 3


def test_scale_down_waits_for_the_window_because_initial_replicas_count_as_a_recommendation() -> None:
    """Of ten initial replicas, two are needed at once; the scale-down follows after 300 s."""
    assert course(autoscaler(), 10, [20.0] * 21) == [*[10] * 20, 2]


def test_scale_down_goes_to_the_largest_recommendation_within_the_window() -> None:
    """The window is 300 s."""
    metrics = [100.0] * 4 + [60.0] * 10 + [20.0] * 10

    assert course(autoscaler(), 10, metrics)[-1] == 6


def test_a_scale_up_window_applies_the_smallest_recommendation_within_it() -> None:
    """A spike that is shorter than the window adds no replica."""
    behaviour = replace(DEFAULT_BEHAVIOUR, up=replace(DEFAULT_BEHAVIOUR.up, window_seconds=60))
    metrics = [20.0, 90.0, 90.0, 20.0, 90.0, 90.0, 90.0, 90.0, 90.0]

    assert course(autoscaler(behaviour), 2, metrics) == [2, 2, 2, 2, 2, 2, 2, 6, 9]


@pytest.mark.parametrize(
    ("select", "expected"), [("Max", 16), ("Min", 14), ("Disabled", 10)], ids=["most", "least", "none"]
)
def test_select_policy_determines_which_policy_applies(select: str, expected: int) -> None:
    """60 % of ten replicas are six, which is more than four pods."""
    up = ScalingRules(
        window_seconds=0,
        paces=(ScalingPace(type="Percent", value=60), ScalingPace(type="Pods", value=4)),
        select=select,  # type: ignore[arg-type] # one of three words
    )
    scaler = autoscaler(replace(DEFAULT_BEHAVIOUR, up=up))

    assert scaler.sync(0.0, replicas=10, pods=10, metric=900.0) == expected


def test_a_rate_applies_to_the_replicas_at_the_start_of_its_period() -> None:
    """With two pods per minute, two are added at once and the next two after a minute."""
    up = ScalingRules(window_seconds=0, paces=(ScalingPace(type="Pods", value=2, period_seconds=60),))
    scaler = autoscaler(replace(DEFAULT_BEHAVIOUR, up=up))

    assert course(scaler, 1, [900.0] * 6) == [3, 3, 3, 3, 5, 5]


def test_a_scale_down_policy_limits_each_step() -> None:
    """It is 10 % per 15 s; the remaining number is rounded down, as in the real controller."""
    down = ScalingRules(window_seconds=0, paces=(ScalingPace(type="Percent", value=10),))
    scaler = autoscaler(replace(DEFAULT_BEHAVIOUR, down=down))

    assert course(scaler, 25, [10.0] * 3) == [22, 19, 17]


def test_replicas_that_the_autoscaler_scaled_to_zero_are_started_again() -> None:
    """The minimum is 0."""
    assert course(autoscaler(Behaviour(up=EAGER, down=EAGER), low=0), 2, [0.0, 0.0, 25.0]) == [0, 0, 3]


def test_each_direction_has_its_own_tolerance() -> None:
    """It is 0 for scale-down and 50 % for scale-up."""
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
    """This holds after every sync for any metric; initial replicas of 0 may remain 0."""
    found = course(autoscaler(low=low, high=high), start, metrics)

    assert all(low <= replicas <= high or (start == 0 and replicas == 0) for replicas in found)


def test_behaviour_has_the_defaults_of_kubernetes() -> None:
    """They apply to each missing field of each direction."""
    spec = {
        "behavior": {
            "scaleUp": {"tolerance": "50m", "policies": [{"type": "Pods", "value": 7, "periodSeconds": 30}]},
            "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min"},
        }
    }

    read = behaviour_of(spec)

    assert read.up == ScalingRules(
        window_seconds=0, paces=(ScalingPace(type="Pods", value=7, period_seconds=30),), tolerance=0.05
    )
    assert read.down == replace(DEFAULT_BEHAVIOUR.down, window_seconds=0, select="Min")
    assert behaviour_of({}) == DEFAULT_BEHAVIOUR
    assert behaviour_of({"behavior": as_behaviour(read)}) == read
