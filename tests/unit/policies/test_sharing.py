"""Decisions for the targets of a binding: no exchange of running replicas; scaling to zero and back."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.planning.load import Signal
from controller.policies.history import History
from controller.policies.policy import (
    Activity,
    Binding,
    PolicyMetric,
    PolicyTarget,
    ScalingPolicy,
    StableLimits,
    Value,
    activity_among,
    lone_binding,
)
from controller.policies.recommending import Limit, Recommendation
from controller.policies.sharing import (
    BindingObservation,
    SharedDecision,
    TargetObservation,
    decide_binding,
    granted_decision,
    recommendation_text,
    sentence,
)
from controller.sizing.records import DEFAULT_SIZING

FREE = StableLimits(period_seconds=0.0)
POLICY = ScalingPolicy(
    metrics=(PolicyMetric(name="m", target=10.0),), tolerance_percent=0, up=FREE, down=FREE
)
NOW = 1000.0
BIG = replace(lone_binding("big", min_replicas=0, max_replicas=4).targets[0], cost=20, capacity=2.5)
SMALL = replace(lone_binding("small", min_replicas=0, max_replicas=9).targets[0], cost=10)


def pair(*targets: PolicyTarget, rate: int = 100) -> Binding:
    """Return a binding of targets with different capacities."""
    return Binding(policy="p", targets=targets, expansion_percent=rate)


def decided(
    binding: Binding, counts: tuple[int, ...], load: float, policy: ScalingPolicy = POLICY
) -> SharedDecision:
    """Return the first decision for a total load."""
    targets = tuple(TargetObservation(current_replicas=count) for count in counts)
    seen = BindingObservation(targets=targets, totals={"m": Value(value=load)})
    return decide_binding(policy, binding, History(), seen, NOW)


def test_a_single_target_gets_the_decided_replicas() -> None:
    """This does not depend on its capacity and cost."""
    binding = Binding(policy="p", targets=(BIG,))

    assert decided(binding, (1,), 30.0).replicas == (3,)


def test_metrics_of_pods_are_divided_by_the_capacity_of_their_target() -> None:
    """A big replica may have two and a half times the target value; with exactly that, nothing changes."""
    seen = BindingObservation(
        targets=(
            TargetObservation(current_replicas=2, pods=({"m": Value(value=25.0)}, {"m": Value(value=25.0)})),
            TargetObservation(current_replicas=1, pods=({"m": Value(value=10.0)},)),
        )
    )
    found = decide_binding(POLICY, pair(BIG, SMALL), History(), seen, NOW)

    assert (found.whole.current_replicas, found.whole.wanted_replicas) == (6, 6)
    assert found.replicas == (2, 1)


@pytest.mark.parametrize(
    ("counts", "load", "want"),
    [
        ((4, 0), 90.0, (4, 0)),  # they serve 10 for 9: one big replica serves more than the excess
        ((4, 0), 70.0, (3, 0)),
        ((3, 3), 70.0, (2, 2)),
        ((0, 5), 100.0, (2, 5)),
        ((1, 1), 34.0, (1, 1)),  # 3.5 serve 3.4
        ((1, 1), 36.0, (1, 2)),
    ],
)
def test_running_replicas_are_not_exchanged(
    counts: tuple[int, ...], load: float, want: tuple[int, ...]
) -> None:
    """If less is required, no replica starts; if more is required, none stops."""
    assert decided(pair(BIG, SMALL), counts, load).replicas == want


@pytest.mark.parametrize(
    ("counts", "load", "want", "least"), [((4, 0), 10.0, (1, 0), (0, 1)), ((0, 5), 100.0, (2, 5), (4, 0))]
)
def test_the_cost_limit_applies_to_mixes_without_exchange(
    counts: tuple[int, int], load: float, want: tuple[int, int], least: tuple[int, int]
) -> None:
    """Running replicas may cost more than the limit allows; from zero, the cheapest mix is chosen."""
    assert decided(pair(BIG, SMALL), counts, load).replicas == want
    assert decided(pair(BIG, SMALL), (0, 0), load).replicas == least
    assert cost(want) > cost(least)


def cost(mix: tuple[int, int]) -> int:
    """Return the cost of a mix of both."""
    return BIG.cost * mix[0] + SMALL.cost * mix[1]


@given(
    st.tuples(st.integers(0, 4), st.integers(0, 9)),
    st.floats(0, 300),
    st.sampled_from((0, 10, 30)),
    st.sampled_from((100, 150, 200)),
)
def test_replicas_of_all_targets_only_grow_or_only_shrink(
    counts: tuple[int, int], load: float, tolerance: int, rate: int
) -> None:
    """Ready replicas never stop before others are ready to take their load."""
    policy = replace(POLICY, tolerance_percent=tolerance)
    found = decided(pair(BIG, SMALL, rate=rate), counts, load, policy).replicas
    changes = [after - before for before, after in zip(counts, found, strict=True)]

    assert all(change >= 0 for change in changes) or all(change <= 0 for change in changes)


def _shrunk(counts: tuple[int, int], ready: tuple[int, int], load: float) -> tuple[int, ...]:
    """Return the replicas after scaling down; some are not ready, and metrics are a total."""
    targets = tuple(
        TargetObservation(current_replicas=count, ready_replicas=here)
        for count, here in zip(counts, ready, strict=True)
    )
    seen = BindingObservation(targets=targets, totals={"m": Value(value=load)})
    return decide_binding(POLICY, pair(BIG, SMALL), History(), seen, NOW).replicas


@pytest.mark.parametrize(
    ("ready", "want"),
    [
        ((2, 4), (0, 4)),  # all are ready: the most expensive stop
        ((2, 0), (2, 0)),  # small replicas are not ready: the big ones stay although they cost more
        ((1, 0), (1, 2)),  # one big replica is not enough: the cheapest of the others stay
        ((0, 0), (0, 4)),
    ],
)
def test_replicas_that_are_not_ready_stop_first(ready: tuple[int, int], want: tuple[int, int]) -> None:
    """Two big and four small replicas serve 9, and 4 are required."""
    assert _shrunk((2, 4), ready, 40.0) == want


@given(
    st.tuples(st.integers(0, 4), st.integers(0, 9)),
    st.tuples(st.integers(0, 4), st.integers(0, 9)),
    st.floats(0, 200),
)
def test_no_ready_replica_stops_while_another_one_remains_that_is_not(
    counts: tuple[int, int], ready: tuple[int, int], load: float
) -> None:
    """This holds for any costs and load."""
    found = _shrunk(counts, ready, load)
    there = tuple(map(min, ready, counts))
    stops = any(after < here for after, here in zip(found, there, strict=True))
    waits = any(after > here for after, here in zip(found, there, strict=True))

    assert not (stops and waits)


def test_a_lowered_bound_takes_effect_at_once() -> None:
    """Replicas above it are replaced by others."""
    assert decided(pair(replace(BIG, max_replicas=1), SMALL), (3, 0), 75.0).replicas == (1, 5)


def _course(down: StableLimits, cycles: int) -> list[tuple[int, History]]:
    """Return the big replicas and the history of each cycle of 15 s, with a minimal load."""
    policy = replace(POLICY, down=down)
    binding = pair(replace(BIG, min_replicas=1, max_replicas=8))
    history, count, course = History(), 8, []
    for number in range(cycles):
        seen = BindingObservation(
            targets=(TargetObservation(current_replicas=count),), totals={"m": Value(value=1.0)}
        )
        found = decide_binding(policy, binding, history, seen, NOW + 15.0 * number)
        history, count = found.history, found.replicas[0]
        course.append((count, history))
    return course


def test_a_replica_that_counts_more_than_the_rate_limit_can_be_removed() -> None:
    """One goes per period: it counts 2.5, and the limit is 2 or less. The history has only real counts."""
    course = _course(StableLimits(instances=1, percent=10, period_seconds=60.0), 40)
    counts = [count for count, _ in course]

    assert counts[0] == 7
    assert all(before - after <= 1 for before, after in zip(counts, counts[4:], strict=False))
    assert counts[-1] == 1
    for count, history in course:
        assert history.peaks[-1].replicas == history.dips[-1].replicas == math.ceil(2.5 * count)


def test_a_limit_of_zero_also_holds_for_large_replicas() -> None:
    """No replica is removed."""
    course = _course(StableLimits(instances=0, percent=0, period_seconds=60.0), 20)

    assert {count for count, _ in course} == {8}


GRANTED = {
    "as decided": ((0, 2), 2, []),
    "less": ((0, 1), 1, [Limit.PLACEMENT]),
    "more": ((0, 4), 4, [Limit.PLACEMENT]),
    "another mix that serves as much": ((1, 0), 3, [Limit.PLACEMENT]),
    "beyond a bound": ((9, 0), 10, [Limit.PLACEMENT]),
}


@pytest.mark.parametrize(("granted", "count", "limits"), GRANTED.values(), ids=GRANTED.keys())
def test_a_decision_that_the_plan_changed_names_placement_as_its_limit(
    granted: tuple[int, int], count: int, limits: list[Limit]
) -> None:
    """The total, the history and the limits are those of the published numbers."""
    binding = pair(BIG, SMALL)
    decision = decided(binding, (0, 5), 20.0)
    assert decision.replicas == (0, 2)

    found = granted_decision(
        decision, binding, granted, history=History(), now_seconds=NOW, detail="the plan says so"
    )

    assert found.whole.replicas == count
    assert list(found.whole.limits) == limits
    assert count in {entry.replicas for entry in found.history.counts}
    assert found.replicas <= (BIG.max_replicas, SMALL.max_replicas)


BINDING = lone_binding("a", min_replicas=0, max_replicas=5)
HELD = DEFAULT_SIZING.held_seconds

TOLD = {
    "no activity metric": (None, Activity.UNWATCHED),
    "no pod": ((), Activity.UNKNOWN),
    "one of two is silent": ((Value(value=0.0), None), Activity.UNKNOWN),
    "one of two reports a request": ((Value(value=0.5), None), Activity.SEEN),
    "both report no request": ((Value(value=0.0), Value(value=0.0)), Activity.IDLE),
    "an outdated report of a request": ((Value(value=1.0, age_seconds=HELD + 1),), Activity.UNKNOWN),
    "an outdated report of no request": ((Value(value=0.0, age_seconds=HELD),), Activity.UNKNOWN),
    "not a number": ((Value(value=float("nan")),), Activity.UNKNOWN),
}


@pytest.mark.parametrize(("values", "want"), TOLD.values(), ids=TOLD.keys())
def test_activity_is_combined_from_the_reports_of_all_pods(
    values: tuple[Value | None, ...] | None, want: Activity
) -> None:
    """One pod with a request is enough; inactivity needs a report of all of them."""
    assert activity_among(values, DEFAULT_SIZING) is want


def decision_on(
    current: int,
    activity: tuple[Value | None, ...] | None,
    *,
    history: History | None = None,
    now_seconds: float = 1000.0,
    grace_seconds: float = 0.0,
    load: float = 0.0,
) -> SharedDecision:
    """Return a decision; the existing replicas share a load."""
    pods = tuple({"m": Value(value=load / current)} for _ in range(current))
    seen = BindingObservation(
        targets=(TargetObservation(current_replicas=current, pods=pods),), activity=activity
    )
    return decide_binding(
        POLICY, BINDING, history or History(), seen, now_seconds, grace_seconds=grace_seconds
    )


SLEEPING = {
    "a request is reported": ((Value(value=3.0),), 1),
    "no request is reported": ((Value(value=0.0),), 0),
    "the pod is silent": ((None,), 0),
    "no activity metric": (None, 0),
}


@pytest.mark.parametrize(("activity", "want"), SLEEPING.values(), ids=SLEEPING.keys())
def test_activity_starts_one_replica_from_zero(activity: tuple[Value | None, ...] | None, want: int) -> None:
    """The number of replicas is decided when this one reports."""
    assert decision_on(0, activity).replicas == (want,)


LAST = {
    "requests are reported": ((Value(value=3.0),), 1),
    "no requests are reported": ((Value(value=0.0),), 0),
    "the pod is silent": ((None,), 1),
    "no activity metric": (None, 0),
}


@pytest.mark.parametrize(("activity", "want"), LAST.values(), ids=LAST.keys())
def test_the_last_replica_is_removed_only_without_activity(
    activity: tuple[Value | None, ...] | None, want: int
) -> None:
    """Otherwise it would be removed and started again."""
    assert decision_on(1, activity).replicas == (want,)


def test_the_grace_period_begins_at_the_last_activity() -> None:
    """A waiting request restarts it, even if the replicas are idle."""
    history = decision_on(1, (Value(value=0.0),), grace_seconds=60.0).history
    history = decision_on(
        1, (Value(value=1.0),), history=history, now_seconds=1050.0, grace_seconds=60.0
    ).history
    soon = decision_on(1, (Value(value=0.0),), history=history, now_seconds=1100.0, grace_seconds=60.0)
    late = decision_on(1, (Value(value=0.0),), history=soon.history, now_seconds=1111.0, grace_seconds=60.0)

    assert (soon.replicas, late.replicas) == ((1,), (0,))


def test_activity_starts_the_cheapest_of_several_targets() -> None:
    """Together they need one replica of capacity 1."""
    cheap, dear = (replace(BINDING.targets[0], cost=cost) for cost in (1, 2))
    binding = replace(BINDING, targets=(dear, cheap), expansion_percent=100)
    asleep = TargetObservation(current_replicas=0)
    seen = BindingObservation(targets=(asleep, asleep), activity=(Value(value=1.0),))

    assert decide_binding(POLICY, binding, History(), seen, 1000.0).replicas == (0, 1)


def test_messages_explain_scaling_from_and_to_zero() -> None:
    """The wording is that of the documentation."""
    assert sentence(decision_on(0, (Value(value=1.0),)).whole).startswith(
        "from 0 to 1 replica: requests arrive or wait before the replicas, which asks for 1"
    )
    assert "at 0 replicas, without activity" in sentence(decision_on(0, (Value(value=0.0),)).whole)
    assert "the activity metric is not known" in sentence(decision_on(0, (None,)).whole)


@pytest.mark.parametrize(
    ("signal", "age_seconds", "text"),
    [
        (Signal.HELD, 31.4, "m is 40, 31 s old, 10 per replica, which asks for 4"),
        (Signal.HELD, 0.2, "m is 40, 10 per replica, which asks for 4"),
        (Signal.HELD, None, "m is 40, 10 per replica, which asks for 4"),
        (Signal.FRESH, 14.0, "m is 40, 10 per replica, which asks for 4"),
    ],
)
def test_the_age_of_a_value_is_named_only_if_it_is_held(
    signal: Signal, age_seconds: float | None, text: str
) -> None:
    """The age is in whole seconds."""
    asked = Recommendation(
        metric="m", target=10.0, signal=signal, total=40.0, replicas=4, age_seconds=age_seconds
    )
    assert recommendation_text(asked) == text
