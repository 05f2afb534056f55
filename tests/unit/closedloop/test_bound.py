"""Recorded decisions of an AutoscalingPolicy in closed loop: metrics, recommended and decided replicas."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from apiserver.schema.json import Json
from controller.closedloop.bound import PolicyFile
from controller.closedloop.named import PolicyName, simulate_policy
from controller.closedloop.outcome import PolicyOutcome
from controller.closedloop.scenario import Scenario
from controller.policies.policy import read_policy

RUNNING = "vllm:num_requests_running"


def played(scenario: Scenario, *metrics: Json) -> PolicyOutcome:
    """Return the outcome of a policy with the given metrics."""
    policy = read_policy(
        {
            "apiVersion": "registry.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicy",
            "metadata": {"name": "p"},
            "spec": {"metrics": [*metrics], "tolerancePercent": 0},
        }
    )
    name = PolicyName(text="p.yaml", kind="file", file=PolicyFile(policy=policy))
    return asyncio.run(simulate_policy(scenario, name))


def test_recommendations_follow_the_metric_and_decisions_are_published(
    scenario: Scenario,
) -> None:
    """There is a decision for every interval, warm-up included."""
    outcome = played(replace(scenario, warm_up_seconds=60.0), {"metricName": RUNNING, "targetValue": 6})
    (decided,) = outcome.decided

    assert decided.targets == ("h100",)
    assert [point.seconds for point in decided.points] == [point.seconds for point in outcome.points]
    assert decided.points[0].seconds == -60
    exact = []
    for point, seen in zip(decided.points, outcome.points, strict=True):
        asked = math.ceil((point.values[RUNNING] or 0.0) / 6)
        if seen.variants[0].ready == point.current_replicas:
            exact.append(point.recommended == asked)
        else:  # a pod that is not ready prevents scaling down
            assert point.recommended is None or point.recommended >= asked
        assert point.replicas == sum(point.targets) == seen.variants[0].published
        assert point.current_replicas <= max(point.replicas, seen.variants[0].spec)
    assert all(exact)
    assert len(exact) > len(decided.points) / 2
    assert len({point.recommended for point in decided.points}) > 2
    assert any(point.recommended != point.replicas for point in decided.points)


@pytest.mark.parametrize("has_other", [False, True], ids=["alone", "beside a known metric"])
def test_an_unknown_metric_is_not_zero(scenario: Scenario, has_other: bool) -> None:
    """Its value is None; if it is the only metric, there is no recommendation."""
    known = [{"metricName": RUNNING, "targetValue": 3}] if has_other else []
    (decided,) = played(scenario, {"metricName": "nobody_has_this", "targetValue": 1}, *known).decided

    assert {point.values["nobody_has_this"] for point in decided.points} == {None}
    assert all((point.recommended is None) != has_other for point in decided.points[1:])


def test_each_model_has_its_own_decisions(scenario: Scenario) -> None:
    """Without a binding, one variant of each model is scaled."""
    (model,) = scenario.models
    first, second = scenario.variants
    other = replace(second, profile=replace(second.profile, model_id="other"))
    both = replace(scenario, models=(model, replace(model, model_id="other")), variants=(first, other))
    outcome = played(both, {"metricName": RUNNING, "targetValue": 6})

    assert [item.targets for item in outcome.decided] == [("h100",), ("l40s",)]
    assert len({tuple(point.replicas for point in item.points) for item in outcome.decided}) == 2
