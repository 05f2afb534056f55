"""A model that may scale to zero, in closed loop: requests that wait in front of it start a replica."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from controller.observe.gather import Terms
from controller.simulation.reconciled import ReconciledPolicy
from controller.simulation.run import play
from controller.simulation.scenario import Scenario
from controller.simulation.workload import Played, TraceEntry
from controller.variants.variantautoscaling import CycleSettings

GRACE_SECONDS = 120.0
RETURN_SECONDS = 1200
"""When requests arrive again after a long pause."""


def replicas_over_time(scenario: Scenario, seconds: list[int]) -> list[tuple[float, int]]:
    """Return the times and the replicas of all variants, with one request at each of some seconds."""
    trace = tuple(
        TraceEntry(offset_ms=second * 1000, prompt_tokens=500, output_tokens=50) for second in seconds
    )
    model = replace(scenario.models[0], workload=Played(trace=trace))
    sparse = replace(scenario, models=(model,), duration_seconds=2400.0)
    settings = CycleSettings(scale_to_zero=True, terms=Terms(grace_seconds=GRACE_SECONDS))
    outcome = asyncio.run(play(sparse, ReconciledPolicy(sparse, cycle_settings=settings)))
    return [(point.seconds, sum(item.spec for item in point.variants)) for point in outcome.points]


def test_a_model_scales_to_zero_and_starts_one_replica_for_requests_that_wait(scenario: Scenario) -> None:
    """It has no replica in the pause, one soon after it, and none long after the last request."""
    seconds = [*range(60), *range(RETURN_SECONDS, RETURN_SECONDS + 120)]

    course = replicas_over_time(scenario, seconds)

    assert 0 in {count for time, count in course if 600 < time < RETURN_SECONDS}
    awake = [count for time, count in course if RETURN_SECONDS + 60 <= time < RETURN_SECONDS + 180]
    assert min(awake) == 1, course
    assert course[-1][1] == 0, course


def test_a_model_stays_at_zero_while_nobody_sends_requests(scenario: Scenario) -> None:
    """Nothing else starts a replica."""
    course = replicas_over_time(scenario, [*range(60)])

    assert {count for time, count in course if time > 900} == {0}, course
