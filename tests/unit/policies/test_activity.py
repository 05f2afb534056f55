"""Scaling to zero and back by a metric of pods before the replicas, such as a router."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.policies.history import History
from controller.policies.policy import (
    Activity,
    PolicyMetric,
    ScalingPolicy,
    StableLimits,
    Value,
    activity_among,
    lone_binding,
)
from controller.policies.sharing import BindingDecision, BindingSeen, TargetSeen, decide_binding, sentence
from controller.sizing.records import DEFAULT_SIZING

FREE = StableLimits(period_seconds=0.0)
POLICY = ScalingPolicy(
    metrics=(PolicyMetric(name="m", target=10.0),), tolerance_percent=0, up=FREE, down=FREE
)
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


def decided(
    current: int,
    activity: tuple[Value | None, ...] | None,
    *,
    history: History | None = None,
    now_seconds: float = 1000.0,
    grace_seconds: float = 0.0,
    load: float = 0.0,
) -> BindingDecision:
    """Return a decision; the existing replicas share a load."""
    pods = tuple({"m": Value(value=load / current)} for _ in range(current))
    seen = BindingSeen(targets=(TargetSeen(current_replicas=current, pods=pods),), activity=activity)
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
    assert decided(0, activity).replicas == (want,)


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
    assert decided(1, activity).replicas == (want,)


def test_the_grace_period_begins_at_the_last_activity() -> None:
    """A waiting request restarts it, even if the replicas are idle."""
    history = decided(1, (Value(value=0.0),), grace_seconds=60.0).history
    history = decided(1, (Value(value=1.0),), history=history, now_seconds=1050.0, grace_seconds=60.0).history
    soon = decided(1, (Value(value=0.0),), history=history, now_seconds=1100.0, grace_seconds=60.0)
    late = decided(1, (Value(value=0.0),), history=soon.history, now_seconds=1111.0, grace_seconds=60.0)

    assert (soon.replicas, late.replicas) == ((1,), (0,))


def test_activity_starts_the_cheapest_of_several_targets() -> None:
    """Together they need one replica of capacity 1."""
    cheap, dear = (replace(BINDING.targets[0], cost=cost) for cost in (1, 2))
    binding = replace(BINDING, targets=(dear, cheap), expansion_percent=100)
    asleep = TargetSeen(current_replicas=0)
    seen = BindingSeen(targets=(asleep, asleep), activity=(Value(value=1.0),))

    assert decide_binding(POLICY, binding, History(), seen, 1000.0).replicas == (0, 1)


def test_messages_explain_scaling_from_and_to_zero() -> None:
    """The wording is that of the documentation."""
    assert sentence(decided(0, (Value(value=1.0),)).whole).startswith(
        "from 0 to 1 replica: requests arrive or wait before the replicas, which asks for 1"
    )
    assert "at 0 replicas, without activity" in sentence(decided(0, (Value(value=0.0),)).whole)
    assert "the activity metric is not known" in sentence(decided(0, (None,)).whole)
