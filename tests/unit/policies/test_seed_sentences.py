"""An example of each behaviour that the published reference page of AutoscalingPolicies describes.

`play` decides once per interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject
from controller.policies.deciding import ScalingDecision, decide
from controller.policies.history import History
from controller.policies.policy import (
    Binding,
    Bounds,
    MetricObservation,
    Observation,
    PanicRules,
    PolicyMetric,
    PolicyTarget,
    ScalingPolicy,
    StableLimits,
    Value,
    read_binding,
    read_policy,
)
from controller.policies.recommending import Limit
from controller.policies.sharing import BindingObservation, TargetObservation, decide_binding
from controller.policies.splitting import Share, split

INTERVAL = 15.0
BOUNDS = Bounds(min_replicas=0, max_replicas=1000)
FREE = StableLimits(period_seconds=0.0)
PLAIN = ScalingPolicy(metrics=(PolicyMetric(name="m", target=10.0),), tolerance_percent=0, up=FREE, down=FREE)


def play(
    policy: ScalingPolicy, loads: Iterable[float], *, current: int, bounds: Bounds = BOUNDS
) -> list[ScalingDecision]:
    """Return the decisions for a series of loads, each of which takes effect at once."""
    history, made = History(), []
    for number, load in enumerate(loads):
        seen = Observation(
            current_replicas=current, metrics={"m": MetricObservation(total=Value(value=load))}
        )
        decision = decide(policy, bounds, history, seen, 1000.0 + number * INTERVAL)
        history, current = decision.history, decision.replicas
        made.append(decision)
    return made


def counts(decisions: list[ScalingDecision]) -> list[int]:
    """Return the replicas of decisions."""
    return [decision.replicas for decision in decisions]


def up(**changes: Any) -> ScalingPolicy:
    """Return a policy that only limits scaling up."""
    return replace(PLAIN, up=replace(StableLimits(), **changes))


def down(**changes: Any) -> ScalingPolicy:
    """Return a policy that only limits scaling down."""
    return replace(PLAIN, down=replace(StableLimits(), **changes))


RULES = PanicRules(percent=100, period_seconds=15, threshold_percent=200, hold_seconds=45)
TOLERANT = replace(PLAIN, tolerance_percent=10)
SLOW = StableLimits(instances=1, percent=0, period_seconds=60)
LATE = StableLimits(period_seconds=0.0, window_seconds=60)
PANICKY = replace(PLAIN, up=SLOW, panic=RULES)
PEAK: list[float] = [10, 10, 40, 40, 40, 40, 40, 40]
Case = tuple[ScalingPolicy, int, list[float], list[int]]
PLAYED: dict[str, Case] = {
    "10 % of 10 replicas are one replica": (TOLERANT, 10, [101], [11]),
    "10 % of 20 replicas are two": (TOLERANT, 20, [211], [22]),
    "one more than 20 is within the tolerance": (TOLERANT, 20, [201], [20]),
    "one less than 20 is within the tolerance": (TOLERANT, 20, [181], [20]),
    "two less than 20 are not": (TOLERANT, 20, [180], [18]),
    "the sum of the metric is divided by the target and rounded up": (PLAIN, 1, [45, 50, 51], [5, 5, 6]),
    "at most two are added within 30 s": (
        up(instances=2, percent=0, period_seconds=30),
        1,
        [100] * 4,
        [3, 3, 5, 5],
    ),
    "at most two are removed within 30 s": (
        down(instances=2, percent=0, period_seconds=30),
        8,
        [0] * 4,
        [6, 6, 4, 4],
    ),
    "at most half of the earlier are added": (up(instances=0, percent=50), 4, [100] * 3, [6, 9, 10]),
    "at most half of the earlier are removed": (down(instances=0, percent=50), 8, [10] * 3, [4, 2, 1]),
    "one is added per minute, for any interval": (replace(PLAIN, up=SLOW), 1, [100] * 6, [2, 2, 2, 2, 3, 3]),
    "Or is the looser limit up": (up(instances=1, percent=100), 4, [100], [8]),
    "Or is the looser limit down": (down(instances=3, percent=25), 4, [0], [1]),
    "And is the stricter limit up": (up(instances=1, percent=100, select="And"), 4, [100], [5]),
    "And is the stricter limit down": (down(instances=3, percent=25, select="And"), 4, [0], [3]),
    "the lowest recommendation of the last 30 s is followed up": (
        up(period_seconds=0, window_seconds=30),
        1,
        [10, 100, 10, 100, 100, 100, 100],
        [1, 1, 1, 1, 1, 10, 10],
    ),
    "the highest recommendation of the last 45 s is followed down": (
        down(period_seconds=0, window_seconds=45),
        10,
        [100, 20, 60, 20, 20, 20, 20],
        [10, 10, 10, 10, 6, 6, 2],
    ),
    "in panic mode, the number at most doubles per period": (PANICKY, 2, [1000] * 4, [4, 8, 16, 32]),
    "in panic mode, the number at most doubles within 30 s": (
        replace(PANICKY, panic=replace(RULES, period_seconds=30)),
        2,
        [1000] * 5,
        [4, 4, 8, 8, 16],
    ),
    "ordinary limits lag behind a surge": (
        replace(PANICKY, panic=None),
        1,
        [10, 200, 200, 200],
        [1, 2, 2, 2],
    ),
    "panic mode follows the surge": (PANICKY, 1, [10, *[200] * 5], [1, 2, 4, 8, 16, 20]),
    "an ordinary window misses the peak": (replace(PLAIN, up=LATE), 1, PEAK, [1] * 6 + [4, 4]),
    "panic mode responds to the peak": (
        replace(PLAIN, up=LATE, panic=RULES),
        1,
        PEAK,
        [1, 1, 2, 4, 4, 4, 4, 4],
    ),
}


@pytest.mark.parametrize(("policy", "current", "loads", "want"), PLAYED.values(), ids=PLAYED.keys())
def test_replicas_follow_a_series_of_loads(
    policy: ScalingPolicy, current: int, loads: list[float], want: list[int]
) -> None:
    """Each decision takes effect at once."""
    assert counts(play(policy, loads, current=current)) == want


def test_bounds_take_precedence_over_everything_else() -> None:
    """They apply to idle and to overloaded replicas."""
    narrow = Bounds(min_replicas=2, max_replicas=5)
    assert counts(play(PLAIN, [0, 1000, 30], current=1, bounds=narrow)) == [2, 5, 3]


def test_the_last_replica_stays_until_there_was_no_demand_for_the_grace_period() -> None:
    """Demand starts one again."""
    patient = replace(BOUNDS, grace_seconds=40)
    assert counts(play(PLAIN, [30, 0, 0, 0, 5], current=3, bounds=patient)) == [3, 1, 1, 0, 1]


def test_the_metric_that_needs_the_most_replicas_is_followed() -> None:
    """Follow the metric that needs the most replicas."""
    policy = replace(PLAIN, metrics=(*PLAIN.metrics, PolicyMetric(name="n", target=1.0)))
    both = {"m": MetricObservation(total=Value(value=50)), "n": MetricObservation(total=Value(value=7))}
    seen = Observation(current_replicas=6, metrics=both)
    assert decide(policy, BOUNDS, History(), seen, 0.0).replicas == 7


def test_scaling_down_is_delayed_and_growth_is_not() -> None:
    """Where the page mentions an average over minutes, gauges count as they are (docs/policies.md)."""
    rise = [10.0] * 5 + [100.0]
    steady = down(period_seconds=0, window_seconds=300)
    assert counts(play(steady, rise, current=1)) == [1] * 5 + [10], "growth is not delayed by an average"
    # The window has raw recommendations: one that had no effect does not delay the next one.
    assert counts(play(steady, [100] * 3 + [15] * 25, current=10)) == [10] * 23 + [2] * 5


def test_panic_begins_at_the_threshold() -> None:
    """Begin panic at 200 % of the current replicas, and not below."""
    below, beyond = play(PANICKY, [39], current=2)[0], play(PANICKY, [31], current=2)[0]
    assert (below.replicas, below.panic_since_seconds) == (4, 1000.0)
    assert (beyond.replicas, beyond.panic_since_seconds) == (4, 1000.0)
    calm = play(PANICKY, [30], current=2)[0]
    assert (calm.replicas, calm.panic_since_seconds) == (3, None)


def test_panic_ends_some_time_after_demand_last_exceeded_the_threshold() -> None:
    """End panic 45 s after demand last exceeded the threshold, and scale nothing down before."""
    played = play(PANICKY, [80, 80, 10, 10, 10, 10, 10], current=4)
    assert counts(played) == [8, 8, 8, 8, 1, 1, 1]
    assert [decision.panic_since_seconds for decision in played[:5]] == [1000.0] * 4 + [None]
    assert Limit.PANIC in played[2].limits


def test_the_cheaper_target_is_filled_first() -> None:
    """Fill the cheaper target first, then the other."""
    targets = (
        Share(min_replicas=0, max_replicas=4, cost=100),
        Share(min_replicas=1, max_replicas=8, cost=60),
    )
    assert split(5, targets, expansion_percent=200) == (0, 5)
    assert split(10, targets, expansion_percent=200) == (2, 8)


def test_the_mix_with_the_least_excess_within_the_allowed_cost_is_chosen() -> None:
    """Choose the mix with the least excess within the allowed cost, given capacities."""
    targets = (
        Share(min_replicas=0, max_replicas=4, cost=9, capacity=2.5),
        Share(min_replicas=0, max_replicas=8, cost=5, capacity=1.0),
    )
    assert split(3.0, targets, expansion_percent=200) == (0, 3)
    assert split(3.0, targets, expansion_percent=100) == (1, 1)
    assert split(7.5, targets, expansion_percent=200) == (3, 0)


def test_a_mix_that_fits_exactly_may_cost_more() -> None:
    """Allow a mix that fits exactly at 180 % of the least cost, and not at 179 %."""
    targets = (
        Share(min_replicas=0, max_replicas=1, cost=10, capacity=4.0),
        Share(min_replicas=0, max_replicas=3, cost=6, capacity=1.0),
    )
    assert split(3.0, targets, expansion_percent=179) == (1, 0)
    assert split(3.0, targets, expansion_percent=180) == (0, 3)


def unlike_binding(first: int, second: int) -> Binding:
    """Return a binding of two targets with these costs; the first has twice the capacity of the second."""
    targets = tuple(
        PolicyTarget(
            target=TargetObject(api_version="apps/v1", kind="Deployment", name=name),
            min_replicas=0,
            max_replicas=4,
            cost=cost,
            capacity=capacity,
        )
        for name, cost, capacity in (("h100", first, 2.0), ("a100", second, 1.0))
    )
    return Binding(policy="p", targets=targets, expansion_percent=100)


def test_the_ratio_of_two_targets_changes_with_the_load() -> None:
    """Change the ratio of the two targets with each load."""
    binding, history = unlike_binding(30, 10), History()
    mixes: list[tuple[int, ...]] = [(0, 1)]
    for number, load in enumerate((20, 40, 60, 100, 120)):
        seen = BindingObservation(
            targets=tuple(TargetObservation(current_replicas=count) for count in mixes[-1]),
            totals={"m": Value(value=load)},
        )
        decision = decide_binding(PLAIN, binding, history, seen, 1000.0 + number * INTERVAL)
        history = decision.history
        mixes.append(decision.replicas)
    assert mixes == [(0, 1), (0, 2), (0, 4), (1, 4), (3, 4), (4, 4)]


def test_labels_select_among_the_pods_of_a_target() -> None:
    """Read labels next to the scaled target, which select among its pods."""
    bound = {"minReplicas": 1, "maxReplicas": 2, "target": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        "additionalMatchLabels": {"role": "leader"},
        "metricEndpoint": {"uri": "/stats", "port": 9000},
    }}  # fmt: skip
    (target,) = read_binding(
        {
            "apiVersion": "registry.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicyBinding",
            "metadata": {"name": "b", "namespace": "ns"},
            "spec": {"policyRef": {"name": "p"}, "scalingConfiguration": bound},
        }
    ).targets
    assert target.labels == (("role", "leader"),)
    assert (target.uri, target.port) == ("/stats", 9000)


def test_defaults_are_those_of_the_page() -> None:
    """Tolerance 10 %, one replica or 100 % in 15 s, windows of 0 s and 5 min, no panic."""
    policy = read_policy(
        {
            "apiVersion": "registry.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicy",
            "metadata": {"name": "p"},
            "spec": {"metrics": [{"metricName": "m", "targetValue": "1500m"}]},
        }
    )

    assert policy == ScalingPolicy(metrics=(PolicyMetric(name="m", target=1.5),))
