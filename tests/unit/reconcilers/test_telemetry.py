"""What Prometheus is told of decisions, and that what is gone is told no longer."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from prometheus_client import CollectorRegistry

from controller.observe.gather import Gathered
from controller.planning.decision import (
    BoundBy,
    CapacitySource,
    Decision,
    LevelReport,
    NodeRequest,
    Plan,
    Reason,
    Signal,
    SolverReport,
    SolverStatus,
)
from controller.planning.snapshot import Snapshot
from controller.reconcilers.advisory import Advice
from controller.reconcilers.divergence import IN_STEP, Divergence, Waiting
from controller.reconcilers.variantautoscaling import Outcome
from controller.telemetry import Telemetry

DECISION = Decision(
    namespace="ns",
    name="chat",
    model_id="m",
    accelerator="A100",
    priority=1,
    replicas=3,
    current_replicas=5,
    unconstrained_replicas=4,
    demand_tokens=1000,
    required_tokens=1200,
    capacity_per_replica_tokens=400,
    capacity_source=CapacitySource.OBSERVED,
    unmet_per_mille=250,
    signal=Signal.FRESH,
    signal_age_seconds=1.0,
    bound_by=BoundBy.ACCELERATORS,
    reason=Reason.SHORTAGE,
    message="chat needs 4 replicas",
)
LEVEL = LevelReport(level="cost", value=7, bound=6, gap=0.125, improvable=0.1, scope="all")
REQUEST = NodeRequest(
    pool="gpus", nodes=2, price_per_hour=Decimal(8), lead_seconds=60, pods=(("ns", "chat", 1),)
)
PLAN = Plan(
    decisions=(DECISION,),
    placements=(),
    cost=Decimal("30.0"),
    solver=SolverReport(status=SolverStatus.OPTIMAL, unproven="cost", gap=0.125, message="", levels=(LEVEL,)),
    requests=(REQUEST,),
)
ADVICE = Advice(reason="ObjectAdvisory", because="why", saved_per_hour=Decimal("25.00"))
OUTCOME = Outcome(
    plan=PLAN,
    gathered=Gathered(snapshot=Snapshot(nodes=(), variants=())),
    written=1,
    scrape_failures=2,
    advices={("ns", "chat"): ADVICE},
    divergence=Divergence(
        elsewhere=3,
        waiting=tuple(
            Waiting(variant=("ns", "chat"), pod=pod, node="n", takers=()) for pod in ("chat-1", "chat-2")
        ),
    ),
)
VARIANT = {"namespace": "ns", "variant_name": "chat", "accelerator_type": "A100"}
TOLD = (
    ("stowplan_desired_replicas", VARIANT, 3),
    ("stowplan_unconstrained_replicas", VARIANT, 4),
    ("stowplan_unmet_per_mille", VARIANT, 250),
    ("stowplan_unmet_ratio", {"namespace": "ns", "model_id": "m", "priority": "1"}, 0.25),
    ("stowplan_advisory_saved_cost", {"namespace": "ns", "variant_name": "chat"}, 25),
    ("stowplan_plan_level_gap_ratio", {"level": "cost"}, 0.125),
    ("stowplan_pending_replicas", {"namespace": "ns", "variant_name": "chat"}, 2),
    ("stowplan_requested_nodes", {"pool": "gpus"}, 2),
)


def test_every_number_of_a_decision_is_told() -> None:
    """Granted, wanted and missing by variant; gaps by level; nodes by pool; savings by advice."""
    registry = CollectorRegistry()

    Telemetry(registry).observe(OUTCOME, seconds=0.1)

    assert [registry.get_sample_value(name, labels) for name, labels, _ in TOLD] == [v for *_, v in TOLD]
    assert registry.get_sample_value("stowplan_plan_cost") == 30
    assert registry.get_sample_value("stowplan_silent_engines") == 2
    assert registry.get_sample_value("stowplan_placements_diverged_total") == 3


def test_who_decided_is_told_and_an_unknown_gap_is_no_number() -> None:
    """Only one has a series: the last; nought would claim a proof."""
    registry = CollectorRegistry()
    ruled = replace(PLAN, solver=replace(PLAN.solver, gap=None, strategy="wva-greedy"))
    telemetry = Telemetry(registry)

    telemetry.observe(OUTCOME, seconds=0.1)
    telemetry.observe(replace(OUTCOME, plan=ruled), seconds=0.1)

    names = ("optimal", "wva-greedy")
    told = [registry.get_sample_value("stowplan_plan_strategy", {"strategy": name}) for name in names]
    gap = registry.get_sample_value("stowplan_plan_gap_ratio")
    assert told == [None, 1]
    assert gap is not None
    assert math.isnan(gap)


def test_evictions_are_counted_by_how_they_ended() -> None:
    """Over all cycles."""
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)

    for evictions in ({"evicted": 2}, {}, {"evicted": 1, "refused": 1}):
        telemetry.observe(replace(OUTCOME, evictions=evictions), seconds=0.1)

    counted = {
        ending: registry.get_sample_value("stowplan_evictions_total", {"outcome": ending})
        for ending in ("evicted", "refused")
    }
    assert counted == {"evicted": 3, "refused": 1}


def test_series_end_with_what_they_are_about() -> None:
    """A variant that is gone, or acted on again, must not look decided or advised for ever."""
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    telemetry.observe(OUTCOME, seconds=0.1)
    empty = replace(PLAN, decisions=(), requests=(), solver=replace(PLAN.solver, levels=()))

    telemetry.observe(replace(OUTCOME, plan=empty, advices={}, divergence=IN_STEP), seconds=0.1)

    assert [registry.get_sample_value(name, labels) for name, labels, _ in TOLD] == [None] * len(TOLD)
