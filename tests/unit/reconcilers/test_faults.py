"""What goes wrong with one variant: it holds and says why, and the other goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from support.cycle_stage import STEP, Stage

from apiserver.schema.json import Json
from controller.reconcilers.advisory import Scope
from controller.reconcilers.variantautoscaling import VariantAutoscalingReconciler
from controller.telemetry import Telemetry


def condition(stage: Stage, name: str, kind: str) -> Json:
    """Return a condition as it was last written."""
    found: Json = next(item for item in stage.statuses[name]["conditions"] if item["type"] == kind)
    return found


def signals(registry: CollectorRegistry, model: str) -> set[str]:
    """Return the grades of a model's demand that the metric shows."""
    return {
        sample.labels["state"]
        for family in registry.collect()
        for sample in family.samples
        if family.name == "stowplan_signal_state" and sample.labels["model_id"] == model and sample.value
    }


async def cycles(stage: Stage, reconciler: VariantAutoscalingReconciler, count: int) -> None:
    """Run cycles in which nothing is written down."""
    for _ in range(count):
        await reconciler.cycle()
        stage.time += STEP


async def test_a_dead_engine_blocks_scaling_down_for_a_while_and_then_the_others_decide() -> None:
    """Condition, event and metric say which of the two it is; the other variant is decided all along."""
    stage, registry = Stage(), CollectorRegistry()
    telemetry = Telemetry(registry)
    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 3)
    stage.failures = {"quiet-0": "no answer: ConnectionRefusedError"}

    seen: list[tuple[str, set[str], int | None]] = []
    for _ in range(30):
        outcome = await reconciler.cycle()
        telemetry.observe(outcome, seconds=1.0)
        reason = condition(stage, "quiet", "MetricsAvailable")["reason"]
        found = reason, signals(registry, "quiet"), stage.number("quiet")
        seen += [found] if found not in seen[-1:] else []
        stage.time += STEP

    assert seen[-2:] == [("MetricsHeld", {"Held"}, 3), ("MetricsByQuorum", {"Quorum"}, 1)]
    assert [reason for name, reason in stage.reasons if name == "quiet" and reason.startswith("Metrics")] == [
        "MetricsAvailable", "MetricsHeld", "MetricsByQuorum",
    ]  # fmt: skip
    message = condition(stage, "quiet", "MetricsAvailable")["message"]
    assert "quiet-0: no answer: ConnectionRefusedError" in message
    assert "decided without 1 silent replica of the model" in message
    assert signals(registry, "loud") == {"Fresh"}
    assert stage.number("loud") == 3


async def test_an_engine_of_another_model_does_not_count_and_is_named() -> None:
    """Neither for the model that it should serve nor for its own; nothing is scaled down without it."""
    stage = Stage(serves={"quiet-1": "loud"})

    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 8)

    said = condition(stage, "quiet", "MetricsAvailable")
    assert "quiet-1: the engine serves model 'loud' and not 'quiet'" in said["message"]
    assert stage.number("quiet") == 3
    demand = stage.statuses["loud"]["decision"]["demand"]
    assert demand["requestsPerSecond"] == "20"


async def test_a_target_that_vanishes_leaves_no_number_and_one_that_returns_is_taken_up_again() -> None:
    """The other variant is decided all along, with what it left."""
    stage = Stage()
    reconciler = stage.reconciler(Scope())
    await cycles(stage, reconciler, 2)

    stage.gone = {"quiet"}
    await cycles(stage, reconciler, 1)
    gone, other = stage.statuses["quiet"], stage.number("loud")
    stage.gone = set()
    await cycles(stage, reconciler, 1)
    back = stage.statuses["quiet"]
    await cycles(stage, reconciler, 6)

    assert "desiredOptimizedAlloc" not in gone
    assert gone["decision"] == {
        "reason": "Unplanned",
        "message": "Deployment 'quiet' does not exist in namespace 'ns'",
    }
    assert other == 3
    assert back["desiredOptimizedAlloc"]["numReplicas"] == 3, "nothing is known of it yet"
    assert back["decision"]["signal"] in {"Unknown", "Fresh"}
    assert stage.number("quiet") == 1


def _silent() -> Iterator[tuple[str, dict[str, str]]]:
    yield "all engines of one model", {f"quiet-{number}": "no answer: TimeoutError" for number in range(3)}
    yield "garbage from one engine", {"quiet-2": "not a Prometheus exposition: Invalid line"}
    yield "a number that is none", {"quiet-2": "vllm:num_requests_waiting is nan: no number from 0 to 1e+07"}


@pytest.mark.parametrize("failures", [found for _, found in _silent()], ids=[name for name, _ in _silent()])
async def test_a_model_whose_engines_say_nothing_holds_and_the_other_goes_on(
    failures: dict[str, str],
) -> None:
    """For as long as an answer counts at all; the reason is the engine's."""
    stage = Stage(failures=failures)

    await cycles(stage, stage.reconciler(Scope()), 12)

    assert stage.number("quiet") == 3
    assert stage.statuses["quiet"]["decision"]["reason"] == "Holding"
    assert next(iter(failures.values())) in condition(stage, "quiet", "MetricsAvailable")["message"]
    assert condition(stage, "loud", "MetricsAvailable")["reason"] == "MetricsAvailable"
