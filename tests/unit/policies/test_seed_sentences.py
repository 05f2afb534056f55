"""Every sentence about scaling behaviour in the seed's page, as the name of a test.

The page is `seeds/registry.volcano.sh-v1alpha1.md`. `play` decides once per interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject
from controller.policies.deciding import ScalingDecision, decide
from controller.policies.history import History
from controller.policies.measuring import Exposed, Look, PodMemory
from controller.policies.policy import (
    Binding,
    Bounds,
    BoundTarget,
    MetricSeen,
    Observation,
    PanicRules,
    PolicyMetric,
    ScalingPolicy,
    StableLimits,
    Value,
    read_binding,
    read_policy,
)
from controller.policies.recommending import Limit
from controller.policies.sharing import BindingSeen, TargetSeen, decide_binding
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
        seen = Observation(current_replicas=current, metrics={"m": MetricSeen(total=Value(value=load))})
        decision = decide(policy, bounds, history, seen, 1000.0 + number * INTERVAL)
        history, current = decision.history, decision.replicas
        made.append(decision)
    return made


def counts(decisions: list[ScalingDecision]) -> list[int]:
    """Return the replicas of decisions."""
    return [decision.replicas for decision in decisions]


def with_up(**changes: Any) -> ScalingPolicy:
    """Return a policy that only limits scaling up."""
    return replace(PLAIN, up=replace(StableLimits(), **changes))


def with_down(**changes: Any) -> ScalingPolicy:
    """Return a policy that only limits scaling down."""
    return replace(PLAIN, down=replace(StableLimits(), **changes))


def tolerance() -> None:
    """Compare in replicas: 10 % of 10 are one replica, of 20 two."""
    policy = replace(PLAIN, tolerance_percent=10)
    assert counts(play(policy, [101], current=10)) == [11]
    assert counts(play(policy, [211], current=20)) == [22]
    assert counts(play(policy, [201], current=20)) == [20]
    assert counts(play(policy, [181], current=20)) == [20]
    assert counts(play(policy, [180], current=20)) == [18]


def several_metrics() -> None:
    """Follow the metric that needs the most replicas."""
    policy = replace(PLAIN, metrics=(*PLAIN.metrics, PolicyMetric(name="n", target=1.0)))
    both = {"m": MetricSeen(total=Value(value=50)), "n": MetricSeen(total=Value(value=7))}
    seen = Observation(current_replicas=6, metrics=both)
    assert decide(policy, BOUNDS, History(), seen, 0.0).replicas == 7


def target_value() -> None:
    """Divide the sum of the metric by the target, and round up."""
    assert counts(play(PLAIN, [45, 50, 51], current=1)) == [5, 5, 6]


def instances_up() -> None:
    """Add at most two replicas within 30 s."""
    assert counts(play(with_up(instances=2, percent=0, period_seconds=30), [100] * 5, current=1)) == [
        3, 3, 5, 5, 7,
    ]  # fmt: skip


def instances_down() -> None:
    """Remove at most two replicas within 30 s."""
    assert counts(play(with_down(instances=2, percent=0, period_seconds=30), [0] * 4, current=8)) == [
        6, 6, 4, 4,
    ]  # fmt: skip


def percent_up() -> None:
    """Add at most half of the earlier replicas within a period."""
    assert counts(play(with_up(instances=0, percent=50, period_seconds=15), [100] * 3, current=4)) == [
        6,
        9,
        10,
    ]


def percent_down() -> None:
    """Remove at most half of the earlier replicas within a period."""
    assert counts(play(with_down(instances=0, percent=50, period_seconds=15), [10] * 3, current=8)) == [
        4,
        2,
        1,
    ]


def period() -> None:
    """Add one replica per minute, for any interval."""
    slow = with_up(instances=1, percent=0, period_seconds=60)
    assert counts(play(slow, [100] * 6, current=1)) == [2, 2, 2, 2, 3, 3]


def select_or() -> None:
    """Apply the looser limit."""
    assert counts(play(with_up(instances=1, percent=100), [100], current=4)) == [8]
    assert counts(play(with_down(instances=3, percent=25), [0], current=4)) == [1]


def select_and() -> None:
    """Apply the stricter limit."""
    assert counts(play(with_up(instances=1, percent=100, select="And"), [100], current=4)) == [5]
    assert counts(play(with_down(instances=3, percent=25, select="And"), [0], current=4)) == [3]


def window_up() -> None:
    """Follow the lowest recommendation of the last 30 s."""
    steady = with_up(period_seconds=0, window_seconds=30)
    assert counts(play(steady, [10, 100, 10, 100, 100, 100, 100], current=1)) == [1, 1, 1, 1, 1, 10, 10]


def window_down() -> None:
    """Follow the highest recommendation of the last 45 s."""
    steady = with_down(period_seconds=0, window_seconds=45)
    assert counts(play(steady, [100, 20, 60, 20, 20, 20, 20], current=10)) == [10, 10, 10, 10, 6, 6, 2]


def last_value(items: Iterable[Exposed]) -> float | None:
    """Return the value of a metric after one scrape per minute."""
    memory, value = PodMemory(), None
    for number, item in enumerate(items):
        look = Look(60.0 * number, {"m": item})
        memory = memory.with_look(look)
        value = memory.values(look).get("m")
    return value


def minute_and_delay() -> None:
    """Keep the delay, but not the average (docs/policies.md): gauges as they are, rates over a minute."""
    rise = [10.0] * 5 + [100.0]
    assert last_value(Exposed(value=value) for value in rise) == 100.0
    counted = [Exposed(value=value, is_counter=True) for value in (0, 60, 120, 180, 240, 840)]
    assert last_value(counted) == 10.0  # 840 / 300 s = 2.8 would be the average over all
    buckets = [{1.0: float(n), math.inf: float(n)} for n in (10, 20, 30, 40, 50)]
    late = {1.0: 50.0, 9.0: 60.0, math.inf: 60.0}
    whole = [{1.0: item[1.0], 9.0: item[1.0], math.inf: item[math.inf]} for item in buckets]
    slow = last_value(Exposed(buckets=item) for item in [*whole, late])
    assert slow is not None
    assert slow > 8.0  # in the last minute all requests were slow, in five minutes only few

    steady = with_down(period_seconds=0, window_seconds=300)
    assert counts(play(steady, rise, current=1)) == [1] * 5 + [10], "growth is not delayed by an average"
    # The window has raw recommendations: one that had no effect does not delay the next one.
    assert counts(play(steady, [100] * 3 + [15] * 25, current=10)) == [10] * 23 + [2] * 5


RULES = PanicRules(percent=100, period_seconds=15, threshold_percent=200, hold_seconds=45)
PANICKY = replace(
    PLAIN,
    up=StableLimits(instances=1, percent=0, period_seconds=60),
    panic=RULES,
)


def panic_threshold() -> None:
    """Begin panic at 200 % of the current replicas, and not below."""
    below, beyond = play(PANICKY, [39], current=2)[0], play(replace(PANICKY), [31], current=2)[0]
    assert (below.replicas, below.panic_since_seconds) == (4, 1000.0)
    assert (beyond.replicas, beyond.panic_since_seconds) == (4, 1000.0)
    calm = play(PANICKY, [30], current=2)[0]
    assert (calm.replicas, calm.panic_since_seconds) == (3, None)


def panic_percent() -> None:
    """At most double the number per period, while the ordinary limit is one replica per minute."""
    assert counts(play(PANICKY, [1000] * 4, current=2)) == [4, 8, 16, 32]


def panic_period() -> None:
    """At most double the number within 30 s."""
    slow = replace(PANICKY, panic=replace(RULES, period_seconds=30))
    assert counts(play(slow, [1000] * 5, current=2)) == [4, 4, 8, 8, 16]


def panic_hold() -> None:
    """End panic 45 s after demand last exceeded the threshold, and scale nothing down before."""
    played = play(PANICKY, [80, 80, 10, 10, 10, 10, 10], current=4)
    assert counts(played) == [8, 8, 8, 8, 1, 1, 1]
    assert [decision.panic_since_seconds for decision in played[:5]] == [1000.0] * 4 + [None]
    assert Limit.PANIC in played[2].limits


def surge() -> None:
    """Lag with ordinary limits, and follow the surge with panic."""
    calm = replace(PANICKY, panic=None)
    assert counts(play(calm, [10, 200, 200, 200], current=1)) == [1, 2, 2, 2]
    assert counts(play(PANICKY, [10, 200, 200, 200, 200, 200], current=1)) == [1, 2, 4, 8, 16, 20]


def quickly() -> None:
    """Miss the peak with an ordinary window, and respond at once with panic."""
    calm = replace(PLAIN, up=StableLimits(period_seconds=0.0, window_seconds=60))
    hasty = replace(calm, panic=RULES)
    peak = [10, 10, 40, 40, 40, 40, 40, 40]
    assert counts(play(calm, peak, current=1)) == [1] * 6 + [4, 4]
    assert counts(play(hasty, peak, current=1)) == [1, 1, 2, 4, 4, 4, 4, 4]


def bounds() -> None:
    """Apply bounds before everything else."""
    narrow = Bounds(min_replicas=2, max_replicas=5)
    assert counts(play(PLAIN, [0, 1000, 30], current=1, bounds=narrow)) == [2, 5, 3]


def grace() -> None:
    """Keep one replica until there was no demand for 40 s; start one again with demand."""
    patient = replace(BOUNDS, grace_seconds=40)
    assert counts(play(PLAIN, [30, 0, 0, 0, 5], current=3, bounds=patient)) == [3, 1, 1, 0, 1]


def optimizer() -> None:
    """Fill the cheaper target first, then the other."""
    targets = (
        Share(min_replicas=0, max_replicas=4, cost=100),
        Share(min_replicas=1, max_replicas=8, cost=60),
    )
    assert split(5, targets, expansion_percent=200) == (0, 5)
    assert split(10, targets, expansion_percent=200) == (2, 8)


def precisely() -> None:
    """Choose the mix with the least excess within the allowed cost, given capacities."""
    targets = (
        Share(min_replicas=0, max_replicas=4, cost=9, capacity=2.5),
        Share(min_replicas=0, max_replicas=8, cost=5, capacity=1.0),
    )
    assert split(3.0, targets, expansion_percent=200) == (0, 3)
    assert split(3.0, targets, expansion_percent=100) == (1, 1)
    assert split(7.5, targets, expansion_percent=200) == (3, 0)


def cost_expansion() -> None:
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
        BoundTarget(
            target=TargetObject(api_version="apps/v1", kind="Deployment", name=name),
            min_replicas=0,
            max_replicas=4,
            cost=cost,
            capacity=capacity,
        )
        for name, cost, capacity in (("h100", first, 2.0), ("a100", second, 1.0))
    )
    return Binding(policy="p", targets=targets, expansion_percent=100)


def ratio() -> None:
    """Change the ratio of the two targets with each load."""
    binding, history = unlike_binding(30, 10), History()
    mixes: list[tuple[int, ...]] = [(0, 1)]
    for number, load in enumerate((20, 40, 60, 100, 120)):
        seen = BindingSeen(
            targets=tuple(TargetSeen(current_replicas=count) for count in mixes[-1]),
            totals={"m": Value(value=load)},
        )
        decision = decide_binding(PLAIN, binding, history, seen, 1000.0 + number * INTERVAL)
        history = decision.history
        mixes.append(decision.replicas)
    assert mixes == [(0, 1), (0, 2), (0, 4), (1, 4), (3, 4), (4, 4)]


def additional_labels() -> None:
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


SENTENCES: Mapping[str, Callable[[], None]] = {
    "The scaling operation will only be actually performed when |current_replicas - target_replicas| >="
    " current_replicas * TolerancePercent.": tolerance,
    "Metrics is the list of metrics used to evaluate scaling decisions.": several_metrics,
    "TargetValue is the target value for the metric to trigger scaling.": target_value,
    "Instances is the maximum number of instances to scale. (up)": instances_up,
    "Instances is the maximum number of instances to scale. (down)": instances_down,
    "Percent is the maximum percentage of instances to scaling. (up)": percent_up,
    "Percent is the maximum percentage of instances to scaling. (down)": percent_down,
    "Period is the duration over which scaling is evaluated.": period,
    "'Or' represents the scaling operation will be performed as long as either the Percent requirement or the"
    " Instances requirement is met.": select_or,
    "'And' represents the scaling operation will be performed as long as both the Percent requirement and the"
    " Instances requirement is met.": select_and,
    "StabilizationWindow is the time window to stabilize scaling up actions.": window_up,
    "This mechanism is relatively stable, as it can smooth out short-term small fluctuations and avoid overly"
    " frequent and unnecessary Pod scaling.": window_down,
    "Stable policy usually makes decisions based on the average value of metrics calculated over the past few"
    " minutes and introduces a scaling-down cool-down period/delay.": minute_and_delay,
    "PanicThresholdPercent is the threshold percent to enter panic mode.": panic_threshold,
    "Percent is the maximum percentage of instances to scale up. (panic)": panic_percent,
    "Period is the duration over which scaling down is evaluated. (panic)": panic_period,
    "PanicModeHold is the duration to hold in panic mode before returning to normal.": panic_hold,
    "When the load surges sharply within a short period, using the average value over a long time window to"
    " calculate the required number of replicas will cause significant lag.": surge,
    "If the system needs to scale out quickly to cope with such peaks, the ordinary scaling logic may fail to"
    " respond in time, resulting in delayed Pod startup, slower service response time or timeouts, and may"
    " even lead to service paralysis or data backlogs (for workloads such as message queues).": quickly,
    "MinReplicas is the minimum number of replicas. MaxReplicas is the maximum number of replicas.": bounds,
    "ScaleToZeroGracePeriod is the duration to wait before scaling to zero.": grace,
    "It dynamically schedules replicas across different Model Infer groups based on overall computing power"
    " requirements": optimizer,
    "Dynamically adjust the deployment ratio of H100/A100 instances based on real-time computing power"
    " demands": ratio,
    "CostExpansionRatePercent is the percentage rate at which the cost expands.": cost_expansion,
    "Adjust the number of related instances based on specified monitoring metrics and their target"
    " values.": target_value,
    "AdditionalMatchLabels is the additional labels to match the target object. The metric uri, e.g."
    " /metrics. The port of pods exposing metric endpoints.": additional_labels,
    "Use integer programming and similar methods to precisely meet computing requirements. Maximize hardware"
    " utilization efficiency": precisely,
}


@pytest.mark.parametrize("holds", SENTENCES.values(), ids=SENTENCES.keys())
def test_each_sentence_of_the_page_holds(holds: Callable[[], None]) -> None:
    """There is an example of each."""
    holds()


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
