"""Prometheus metrics of decisions, which end with the objects that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.annotated import hpa
from support.decisions import LOAD, SOLVED, decision, plan_of
from support.monitoring import documented
from support.observations import observed
from support.planning_builders import variant

from apiserver.cluster.errors import Forbidden
from apiserver.kinds.following import FollowingProblem, Problem
from controller.observe.conditions import ConditionReason
from controller.observe.decision_following import ActingReason
from controller.observe.declarations import claims_of_annotated
from controller.observe.gather import GatherResult
from controller.observe.policies import SettingsProblem
from controller.planning.decision import LevelReport, NodeRequest
from controller.planning.load import Signal
from controller.planning.snapshot import Snapshot
from controller.sizing.attainment import Attainment, TargetAttainment
from controller.sizing.records import Targets
from controller.sizing.sizing import SizedVariant
from controller.variants.advisory import Advice
from controller.variants.placement_following import IN_STEP, Divergence, WaitingReplica
from controller.variants.telemetry import CycleResult, Telemetry

DECISION = decision("chat")
LEVEL = LevelReport(level="cost", value=7, bound=6, gap=0.125, improvable=0.1)
REQUEST = NodeRequest(
    pool="gpus", nodes=2, price_per_hour=Decimal(8), lead_seconds=60, pods=(("ns", "chat", 1),)
)
PLAN = plan_of(
    DECISION,
    cost=Decimal("30.0"),
    solver=replace(SOLVED, unproven="cost", gap=0.125, levels=(LEVEL,)),
    requests=(REQUEST,),
)
SEEN = variant("chat", "n", None, namespace="ns", model_id="m", accelerator="A100", cost="2.5")
ADVICE = Advice(reason=ConditionReason.OBJECT_ADVISORY, because="why", saved_per_hour=Decimal("25.00"))
OUTCOME = CycleResult(
    plan=PLAN,
    gathered=GatherResult(
        snapshot=Snapshot(nodes=(), variants=(SEEN,)),
        observed={
            ("ns", "chat"): observed(misread=(Problem(reason=FollowingProblem.TARGET_DIFFERS, message="x"),))
        },
    ),
    acting={("ns", "chat"): (False, ActingReason.BELOW, "y")},
    written=1,
    unwritten={("ns", "chat"): Forbidden("denied")},
    scrape_failures=2,
    responding=5,
    not_ready={("ns", "chat"): "MetricTargetDiffers"},
    silent_models={("ns", "m"): "connection refused"},
    advices={("ns", "chat"): ADVICE},
    sized={
        ("ns", "chat"): SizedVariant(
            service_level=TargetAttainment(
                targets=Targets(ttft_seconds=2.0, itl_seconds=0.05),
                attained=Attainment(requests=100.0, missed_ttft=10.0, missed_itl=20.0),
            )
        )
    },
    divergence=Divergence(
        elsewhere=3,
        waiting=tuple(
            WaitingReplica(variant=("ns", "chat"), pod=pod, node="n", takers=())
            for pod in ("chat-1", "chat-2")
        ),
    ),
    settings=(
        SettingsProblem(
            config_map="costs", key="A100", text="wrong", since=datetime(2026, 1, 1, 12, tzinfo=UTC)
        ),
    ),
)
VARIANT = {"namespace": "ns", "variant_name": "chat", "accelerator_type": "A100"}
VARIANT_NAME = {"namespace": "ns", "variant_name": "chat"}
MODEL = {"namespace": "ns", "model_id": "m"}
TOLD = (
    ("stowplan_desired_replicas", VARIANT, 3),
    ("stowplan_current_replicas", VARIANT, 2),
    ("stowplan_ready_replicas", VARIANT, 1),
    ("stowplan_not_ready", {"namespace": "ns", "variant_name": "chat", "reason": "MetricTargetDiffers"}, 1),
    (
        "stowplan_decision_not_followed",
        {"namespace": "ns", "variant_name": "chat", "reason": "MetricTargetDiffers"},
        1,
    ),
    (
        "stowplan_decision_not_followed",
        {"namespace": "ns", "variant_name": "chat", "reason": "ReplicasBelowDecision"},
        1,
    ),
    ("stowplan_unconstrained_replicas", VARIANT, 7),
    ("stowplan_unmet_per_mille", VARIANT, 250),
    ("stowplan_unmet_ratio", MODEL | {"priority": "1"}, 0.25),
    ("stowplan_demand_requests_per_second", MODEL, 41.0),
    ("stowplan_demand_upper_requests_per_second", MODEL, 52.25),
    ("stowplan_required_requests_per_second", MODEL, 61.470588),
    ("stowplan_signal_state", MODEL | {"state": "Fresh"}, 1),
    ("stowplan_signal_age_seconds", MODEL, 1.5),
    (
        "stowplan_capacity_requests_per_second",
        {"namespace": "ns", "variant_name": "chat", "source": "Learned"},
        9.4,
    ),
    ("stowplan_attained_ratio", MODEL | {"priority": "1"}, pytest.approx(0.72)),
    ("stowplan_promised_ratio", MODEL | {"priority": "1"}, 0.95),
    ("stowplan_ttft_target_seconds", MODEL | {"priority": "1"}, 2.0),
    ("stowplan_ttft_attained_ratio", MODEL | {"priority": "1"}, 0.9),
    ("stowplan_itl_target_seconds", MODEL | {"priority": "1"}, 0.05),
    ("stowplan_itl_attained_ratio", MODEL | {"priority": "1"}, 0.8),
    ("stowplan_desired_cost", MODEL, 7.5),
    ("stowplan_current_cost", MODEL, 5),
    ("stowplan_advisory_saved_cost", {"namespace": "ns", "variant_name": "chat"}, 25),
    ("stowplan_plan_level_gap_ratio", {"level": "cost"}, 0.125),
    ("stowplan_pending_replicas", {"namespace": "ns", "variant_name": "chat"}, 2),
    ("stowplan_silent_model", MODEL, 1),
    ("stowplan_requested_nodes", {"pool": "gpus"}, 2),
    (
        "stowplan_invalid_settings_since_timestamp_seconds",
        {"config_map": "costs", "key": "A100", "problem": "wrong"},
        1_767_268_800,
    ),
)


def after(*results: CycleResult) -> CollectorRegistry:
    """Return the registry after some cycles."""
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    for result in results:
        telemetry.observe(result, seconds=0.1, now_seconds=0.0)
    return registry


def test_every_figure_of_a_decision_is_a_metric() -> None:
    """The labels are variant for replicas and advice, model for load, level for gaps, and pool for nodes."""
    registry = after(OUTCOME)

    families = [family for family in registry.collect() if family.name.startswith("stowplan_")]
    gauges = [family for family in families if family.type == "gauge"]
    unlabelled = {sample.name for family in gauges for sample in family.samples if not sample.labels}
    assert {family.name for family in gauges} - unlabelled == {name for name, *_ in TOLD}
    assert [registry.get_sample_value(name, labels) for name, labels, _ in TOLD] == [v for *_, v in TOLD]
    assert registry.get_sample_value("stowplan_plan_cost") == 30
    assert registry.get_sample_value("stowplan_silent_engines") == 2
    assert registry.get_sample_value("stowplan_responding_engines") == 5
    assert registry.get_sample_value("stowplan_status_writes_total") == 1
    assert registry.get_sample_value("stowplan_status_writes_failed_total") == 1
    assert registry.get_sample_value("stowplan_placements_diverged_total") == 3


def test_the_labels_of_a_metric_are_those_of_its_documentation() -> None:
    """Alerts and dashboards of users are written by the page."""
    labels = {metric.name: {*metric.labels} for metric in documented()}

    assert {name: labels[name] for name, *_ in TOLD} == {name: {*given} for name, given, _ in TOLD}


def test_an_unknown_load_has_a_state_and_no_value() -> None:
    """Its earlier values are removed."""
    unknown = replace(LOAD, signal=Signal.UNKNOWN, signal_age_seconds=None, requests_per_second=None)
    dark = replace(DECISION, load=unknown, capacity=None)

    registry = after(OUTCOME, replace(OUTCOME, plan=replace(PLAN, decisions=(dark,))))

    gone = [name for name, labels, _ in TOLD if registry.get_sample_value(name, labels) is None]
    assert gone == [
        "stowplan_demand_requests_per_second",
        "stowplan_demand_upper_requests_per_second",
        "stowplan_required_requests_per_second",
        "stowplan_signal_state",
        "stowplan_signal_age_seconds",
        "stowplan_capacity_requests_per_second",
    ]
    assert registry.get_sample_value("stowplan_signal_state", MODEL | {"state": "Unknown"}) == 1


def test_a_target_that_a_class_lacks_has_no_series() -> None:
    """A share of 1 would claim that a promise is kept which nobody made."""
    level = TargetAttainment(targets=Targets(itl_seconds=0.05), attained=Attainment(requests=100.0))

    registry = after(replace(OUTCOME, sized={DECISION.key: SizedVariant(service_level=level)}))

    names = ("ttft_target_seconds", "ttft_attained_ratio", "itl_target_seconds", "itl_attained_ratio")
    labels = MODEL | {"priority": "1"}
    found = [registry.get_sample_value(f"stowplan_{name}", labels) for name in names]
    assert found == [None, None, 0.05, 1]


def test_the_cost_of_a_model_is_that_of_all_its_variants() -> None:
    """Each variant has its own price."""
    seen = (SEEN, replace(SEEN, name="other", cost_per_replica=Decimal(4), replicas=()))
    observations = OUTCOME.gathered.observed
    gathered = GatherResult(
        snapshot=Snapshot(nodes=(), variants=seen),
        observed=dict.fromkeys((item.key for item in seen), observations[SEEN.key]),
    )
    plan = replace(PLAN, decisions=(DECISION, replace(DECISION, name="other", replicas=1)))

    registry = after(replace(OUTCOME, plan=plan, gathered=gathered))

    assert registry.get_sample_value("stowplan_desired_cost", MODEL) == 3 * 2.5 + 1 * 4
    assert registry.get_sample_value("stowplan_current_cost", MODEL) == 2 * 2.5 + 2 * 4


def test_the_time_until_replicas_are_ready_is_observed_until_no_variant_is_left() -> None:
    """By accelerator, because a histogram for each variant is too large. Advice is not timed."""
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    name, pool = "stowplan_decision_to_ready_seconds", {"namespace": "ns", "accelerator_type": "A100"}

    def observe(granted: int, ready: int, now_seconds: float, **changes: Any) -> float | None:
        seen = variant("chat", *["n"] * ready, namespace="ns", model_id="m", accelerator="A100")
        gathered = replace(OUTCOME.gathered, snapshot=Snapshot(nodes=(), variants=(seen,)))
        plan = replace(PLAN, decisions=(replace(DECISION, replicas=granted),))
        result = replace(OUTCOME, plan=plan, gathered=gathered, **{"advices": {}} | changes)
        telemetry.observe(result, seconds=0.1, now_seconds=now_seconds)
        return registry.get_sample_value(f"{name}_sum", pool)

    assert [observe(1, 1, 0.0), observe(2, 1, 15.0), observe(2, 2, 135.0)] == [None, None, 120]
    assert registry.get_sample_value(f"{name}_bucket", pool | {"le": "120.0"}) == 1
    advised = OUTCOME.advices
    assert observe(2, 2, 150.0, advices=advised) is None
    assert [observe(3, 2, 165.0, advices=advised), observe(3, 3, 180.0, advices=advised)] == [None, None]


def test_the_times_of_all_variants_on_one_accelerator_are_one_histogram() -> None:
    """Fifty variants have as many series as one."""
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    names = [f"chat-{number}" for number in range(50)]
    pool = {"namespace": "ns", "accelerator_type": "A100"}

    for granted, ready, now_seconds in ((1, 1, 0.0), (2, 1, 15.0), (2, 2, 135.0)):
        seen = [variant(name, *["n"] * ready, namespace="ns", accelerator="A100") for name in names]
        gathered = replace(
            OUTCOME.gathered,
            snapshot=Snapshot(nodes=(), variants=tuple(seen)),
            observed={item.key: next(iter(OUTCOME.gathered.observed.values())) for item in seen},
        )
        plan = replace(
            PLAN, decisions=tuple(replace(DECISION, name=name, replicas=granted) for name in names)
        )
        result = replace(OUTCOME, plan=plan, gathered=gathered, advices={}, acting={}, not_ready={})
        telemetry.observe(result, seconds=0.1, now_seconds=now_seconds)

    (found,) = (item for item in registry.collect() if item.name == "stowplan_decision_to_ready_seconds")
    counted = [item for item in found.samples if item.name.endswith("_count")]
    assert [(item.labels, item.value) for item in counted] == [(pool, 50)]


def test_evictions_are_counted_by_outcome() -> None:
    """The counters add up all cycles."""
    cycles: tuple[dict[str, int], ...] = ({"evicted": 2}, {}, {"evicted": 1, "refused": 1})
    registry = after(*(replace(OUTCOME, evictions=evictions) for evictions in cycles))

    counted = {
        ending: registry.get_sample_value("stowplan_evictions_total", {"outcome": ending})
        for ending in ("evicted", "refused")
    }
    assert counted == {"evicted": 3, "refused": 1}


def test_series_end_with_the_objects_that_they_describe() -> None:
    """A deleted variant, or one that is no longer advisory, must not keep its last values."""
    empty = replace(PLAN, decisions=(), requests=(), solver=replace(PLAN.solver, levels=()))

    gone = GatherResult(snapshot=Snapshot(nodes=(), variants=()))
    ended = replace(OUTCOME, plan=empty, gathered=gone, acting={}, advices={}, divergence=IN_STEP)
    ended = replace(ended, settings=(), silent_models={}, not_ready={})
    registry = after(OUTCOME, ended)

    left = {label for family in registry.collect() for sample in family.samples for label in sample.labels}
    assert left == {"outcome", "le"}  # of cycles and their duration


def test_reversals_are_counted_until_the_variant_is_deleted() -> None:
    """A later variant of the same name starts without a count and without a direction."""
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    found = []

    for replicas in (3, 5, 4, 6, None, 2, 3, 1):
        decisions = () if replicas is None else (replace(DECISION, replicas=replicas),)
        telemetry.observe(
            replace(OUTCOME, plan=replace(PLAN, decisions=decisions)), seconds=0.1, now_seconds=0.0
        )
        names = {"namespace": DECISION.namespace, "variant_name": DECISION.name}
        found.append(registry.get_sample_value("stowplan_reversals_total", names))

    assert found == [None, None, 1, 2, None, None, None, 1]


CHAT_HPA, TOLD_HPA = hpa("chat", labels={"wva.llmd.ai/controller-instance": "blue"}), hpa("told")
EXTERNAL = {
    "accelerator_type": "A100",
    "controller_instance": "blue",
    "model_id": "meta/llama-3.1-8b",
    "namespace": "ns",
    "variant_id": "",
    "variant_name": "chat",
}


def decided(running: int) -> CycleResult:
    """Return a cycle that decided on three replicas each, for a variant and for one with advice only."""
    variants = (
        replace(variant("chat", "n", namespace="ns", accelerator="A100"), current_replicas=running),
        variant("told", "n", namespace="ns", accelerator="A100"),
    )
    return CycleResult(
        plan=plan_of(decision("chat"), decision("told")),
        gathered=GatherResult(
            snapshot=Snapshot(nodes=(), variants=variants),
            observed={item.key: observed() for item in variants},
            claimants=claims_of_annotated([CHAT_HPA, TOLD_HPA], (), {}, claimed=()).claimants,
        ),
        written=0,
        scrape_failures=0,
        advices={("ns", "told"): ADVICE},
    )


RATIOS: Mapping[str, tuple[int, float]] = {"some replicas": (2, 1.5), "no replica": (0, 3.0)}


@pytest.mark.parametrize("name", RATIOS)
def test_a_decision_has_a_number_and_advice_has_none(name: str) -> None:
    """The ratio to no replicas is that to one."""
    running, ratio = RATIOS[name]
    registry = after(decided(running))

    assert registry.get_sample_value("wva_desired_replicas", EXTERNAL) == 3
    assert registry.get_sample_value("wva_current_replicas", EXTERNAL) == running
    assert registry.get_sample_value("wva_desired_ratio", EXTERNAL) == ratio
    families = [family for family in registry.collect() if family.name.startswith("wva_")]
    names = {sample.labels["variant_name"] for family in families for sample in family.samples}
    assert names == {"chat"}


def test_the_labels_are_those_of_the_documentation() -> None:
    """Queries are written by the page."""
    rows = {item.name: item.labels for item in documented() if item.name.startswith("wva_")}

    assert rows == dict.fromkeys(
        ("wva_desired_replicas", "wva_current_replicas", "wva_desired_ratio"), tuple(EXTERNAL)
    )


def test_numbers_end_with_their_objects() -> None:
    """Later cycles replace all of them."""
    gone = GatherResult(snapshot=Snapshot(nodes=(), variants=()))
    registry = after(decided(1), replace(decided(1), gathered=gone, advices={}))

    assert registry.get_sample_value("wva_desired_replicas", EXTERNAL) is None
