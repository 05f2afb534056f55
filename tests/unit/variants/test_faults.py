"""Faults of one variant: it holds and reports the reason, and the other variant is not affected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from support.cycle_stage import STEP, Stage

from apiserver.schema.json import Json
from controller.variants.advisory import Scope
from controller.variants.telemetry import Telemetry
from controller.variants.variantautoscaling import VariantAutoscalingReconciler


def condition(stage: Stage, name: str, kind: str) -> Json:
    """Return a condition as it was last written."""
    found: Json = next(item for item in stage.statuses[name]["conditions"] if item["type"] == kind)
    return found


def signals(registry: CollectorRegistry, model: str) -> set[str]:
    """Return the signal states of a model's demand in the metric."""
    return {
        sample.labels["state"]
        for family in registry.collect()
        for sample in family.samples
        if family.name == "stowplan_signal_state" and sample.labels["model_id"] == model and sample.value
    }


async def cycles(stage: Stage, reconciler: VariantAutoscalingReconciler, count: int) -> None:
    """Run cycles without recording their outcome."""
    for _ in range(count):
        await reconciler.cycle()
        stage.time += STEP


async def test_a_failed_engine_prevents_scaling_down_only_for_a_limited_time() -> None:
    """Condition, event and metric tell the two phases apart; decisions on the other variant continue."""
    stage, registry = Stage(), CollectorRegistry()
    telemetry = Telemetry(registry)
    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 3)
    stage.failures = {"quiet-0": "no answer: connection refused"}

    seen: list[tuple[str, set[str], int | None]] = []
    for _ in range(30):
        outcome = await reconciler.cycle()
        telemetry.observe(outcome, seconds=1.0, now_seconds=0.0)
        reason = condition(stage, "quiet", "MetricsAvailable")["reason"]
        found = reason, signals(registry, "quiet"), stage.number("quiet")
        seen += [found] if found not in seen[-1:] else []
        stage.time += STEP

    assert seen[-2:] == [("MetricsHeld", {"Held"}, 3), ("MetricsByQuorum", {"Quorum"}, 1)]
    assert [reason for name, reason in stage.reasons if name == "quiet" and reason.startswith("Metrics")] == [
        "MetricsAvailable", "MetricsHeld", "MetricsByQuorum",
    ]  # fmt: skip
    message = condition(stage, "quiet", "MetricsAvailable")["message"]
    assert "quiet-0: no answer: connection refused" in message
    assert "decided without 1 silent replica of the model" in message
    assert signals(registry, "loud") == {"Fresh"}
    assert registry.get_sample_value("stowplan_silent_engines") == 1
    assert registry.get_sample_value("stowplan_responding_engines") == 3
    assert stage.number("loud") == 3


async def test_an_engine_that_serves_another_model_is_ignored_and_named() -> None:
    """It counts for neither model, and the variant is not scaled down without it."""
    stage = Stage(serves={"quiet-1": "loud"})

    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 8)

    said = condition(stage, "quiet", "MetricsAvailable")
    assert "quiet-1: the engine serves model 'loud' and not 'quiet'" in said["message"]
    assert stage.number("quiet") == 3
    demand = stage.statuses["loud"]["decision"]["demand"]
    assert demand["requestsPerSecond"] == "20"


async def test_a_variant_without_target_publishes_no_number_until_the_target_returns() -> None:
    """Meanwhile the other variant gets the freed accelerators."""
    stage = Stage()
    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 2)

    stage.gone = {"quiet"}
    outcome = await reconciler.cycle()
    stage.time += STEP
    gone, other = stage.statuses["quiet"], stage.number("loud")
    stage.gone = set()
    await cycles(stage, reconciler, 1)
    back = stage.statuses["quiet"]
    await cycles(stage, reconciler, 6)

    assert "desiredOptimizedAlloc" not in gone
    assert outcome.not_ready["ns", "quiet"] == "TargetNotFound"
    assert gone["decision"] == {
        "reason": "Unplanned",
        "message": "Deployment 'quiet' does not exist in namespace 'ns'",
    }
    assert other == 3
    assert back["desiredOptimizedAlloc"]["numReplicas"] == 3, "nothing is known of it yet"
    assert back["decision"]["signal"] in {"Unknown", "Fresh"}
    assert stage.number("quiet") == 1


def _silent() -> Iterator[tuple[str, dict[str, str]]]:
    yield "all engines of one model", {f"quiet-{number}": "no answer: not in time" for number in range(3)}
    yield "garbage from one engine", {"quiet-2": "not a Prometheus exposition: Invalid line"}
    yield "a number that is none", {"quiet-2": "vllm:num_requests_waiting is nan: no number from 0 to 1e+07"}


@pytest.mark.parametrize("failures", [found for _, found in _silent()], ids=[name for name, _ in _silent()])
async def test_a_model_without_valid_metrics_holds_and_the_other_model_is_decided(
    failures: dict[str, str],
) -> None:
    """This lasts for as long as older metrics are valid; the condition has the engine's error."""
    stage = Stage(failures=failures)

    await cycles(stage, stage.reconciler(Scope()), 12)

    assert stage.number("quiet") == 3
    assert stage.statuses["quiet"]["decision"]["reason"] == "Holding"
    assert next(iter(failures.values())) in condition(stage, "quiet", "MetricsAvailable")["message"]
    assert condition(stage, "loud", "MetricsAvailable")["reason"] == "MetricsAvailable"


async def test_a_replica_that_is_not_ready_for_long_is_reported() -> None:
    """The status of the condition does not change, because all ready replicas report."""
    stage = Stage(unready="quiet-2", started="2026-01-01T11:55:00Z")
    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 2)
    before = condition(stage, "quiet", "MetricsAvailable")

    await cycles(stage, reconciler, 30)

    said = condition(stage, "quiet", "MetricsAvailable")
    text = "; quiet-2 has not been ready for more than 600 s"
    assert (before["reason"], text in before["message"]) == ("MetricsAvailable", False)
    assert (said["reason"], text in said["message"]) == ("MetricsAvailable", True)


async def test_an_error_in_the_status_of_one_variant_does_not_affect_the_other() -> None:
    """Kubernetes accepts a time in the year 0. The variant gets no number, and its condition says why."""
    stage = Stage(unready="quiet-2", started="0000-01-01T00:00:00Z")

    await cycles(stage, stage.reconciler(Scope()), 6)

    assert stage.statuses["quiet"]["actuation"] == {"applied": False}
    said = condition(stage, "quiet", "OptimizationReady")
    assert (said["status"], said["reason"]) == ("False", "InvalidConfiguration")
    assert said["message"] == "ValueError in the controller: its log has the details"
    assert stage.number("loud") == 3


async def test_a_status_stays_below_the_limits_of_the_api_server_whatever_the_object_contains() -> None:
    """A refused status is not confirmed, and a cycle with more than 100 of them counts as unfinished."""
    stage = Stage(annotations={f"stowplan.dev/unknown-{number}": "x" for number in range(500)})

    await cycles(stage, stage.reconciler(Scope()), 1)

    said = condition(stage, "quiet", "AnnotationsResolved")
    assert said["reason"] == "AnnotationNotUnderstood"
    assert len(said["message"]) <= 1024
