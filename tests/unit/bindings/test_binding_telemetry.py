"""Prometheus metrics of decisions on bindings, which end with the bindings."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry
from support.binding_stage import Stage, policy
from support.monitoring import documented

from apiserver.cluster.errors import Unavailable
from controller.bindings.scaling import Ending
from controller.bindings.status import BindingCycleResult
from controller.bindings.telemetry import BindingTelemetry

BINDING = {"namespace": "ns", "binding_name": "b"}
TOLD = (
    ("stowplan_policy_desired_replicas", BINDING | {"target_kind": "Deployment", "target_name": "a"}, 9),
    ("stowplan_policy_wanted_replicas", BINDING, 1),
    ("stowplan_policy_panic", BINDING, 1),
    ("stowplan_policy_limited", BINDING | {"limit": "Panic"}, 1),
)


async def panicking() -> BindingCycleResult:
    """Return a cycle in which panic mode prevents scaling down."""
    panic = {"panicPolicy": {"period": "0s", "panicModeHold": "120s"}}
    rules = {"scaleUp": panic, "scaleDown": {"period": "0s", "stabilizationWindow": "0s"}}
    stage = Stage(loads={"a": 45.0}, policies=[policy(behavior=rules)])
    await stage.cycle(follow=True)
    stage.loads["a"] = 0.5
    return await stage.cycle()


async def test_every_figure_of_a_decision_is_a_metric_until_the_binding_is_deleted() -> None:
    """Its labels are those of the documentation."""
    registry = CollectorRegistry()
    telemetry = BindingTelemetry(registry)
    labels = {metric.name: {*metric.labels} for metric in documented()}

    telemetry.observe(await panicking())

    assert [registry.get_sample_value(name, given) for name, given, _ in TOLD] == [v for *_, v in TOLD]
    assert {name: labels[name] for name, *_ in TOLD} == {name: {*given} for name, given, _ in TOLD}
    telemetry.observe(BindingCycleResult())
    assert not [sample for family in registry.collect() for sample in family.samples if sample.labels]


async def test_counters_add_up_all_cycles_and_the_gauge_of_pods_does_not() -> None:
    """A failed cycle leaves the gauges unchanged."""
    registry = CollectorRegistry()
    telemetry = BindingTelemetry(registry)
    cycle = replace(
        await panicking(),
        written=1,
        scrape_failures=3,
        responding=4,
        scaled={Ending.WRITTEN: 2},
        unwritten={("ns", "b"): Unavailable("cut off")},
    )

    telemetry.observe(cycle)
    telemetry.observe(cycle)
    telemetry.count_failure()

    assert registry.get_sample_value("stowplan_policy_silent_pods") == 3
    assert registry.get_sample_value("stowplan_policy_responding_pods") == 4
    assert registry.get_sample_value("stowplan_policy_status_writes_total") == 2
    assert registry.get_sample_value("stowplan_policy_status_writes_failed_total") == 2
    assert registry.get_sample_value("stowplan_policy_scale_writes_total", {"outcome": "written"}) == 4
    assert registry.get_sample_value("stowplan_policy_cycles_failed_total") == 1
    assert registry.get_sample_value("stowplan_policy_desired_replicas", TOLD[0][1]) == 9
