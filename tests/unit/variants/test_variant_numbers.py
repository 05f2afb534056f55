"""The numbers of variants under the names of llm-d: equal to those of the external metrics API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from prometheus_client import CollectorRegistry
from support.annotated import hpa
from support.decisions import decision, plan_of
from support.monitoring import documented
from support.planning_builders import variant

from controller.observe.conditions import ConditionReason
from controller.observe.declarations import claims_of_annotated
from controller.observe.gather import Gathered
from controller.planning.snapshot import Snapshot
from controller.variants.advisory import Advice
from controller.variants.telemetry import CycleResult, VariantNumbers

CHAT, TOLD = hpa("chat", labels={"wva.llmd.ai/controller-instance": "blue"}), hpa("told")
ADVICE = Advice(reason=ConditionReason.OBJECT_ADVISORY, because="why", saved_per_hour=Decimal(1))
LABELS = {
    "accelerator_type": "A100",
    "controller_instance": "blue",
    "model_id": "meta/llama-3.1-8b",
    "namespace": "ns",
    "variant_id": "",
    "variant_name": "chat",
}


def result(running: int) -> CycleResult:
    """Return a cycle that decided on three replicas each, for a variant and for one with advice only."""
    variants = (
        replace(variant("chat", "n", namespace="ns", accelerator="A100"), current_replicas=running),
        variant("told", "n", namespace="ns", accelerator="A100"),
    )
    return CycleResult(
        plan=plan_of(decision("chat"), decision("told")),
        gathered=Gathered(
            snapshot=Snapshot(nodes=(), variants=variants),
            claimants=claims_of_annotated([CHAT, TOLD], (), {}, taken=()).claimants,
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
    registry = CollectorRegistry()
    VariantNumbers(registry).observe(result(running))

    assert registry.get_sample_value("wva_desired_replicas", LABELS) == 3
    assert registry.get_sample_value("wva_current_replicas", LABELS) == running
    assert registry.get_sample_value("wva_desired_ratio", LABELS) == ratio
    names = {sample.labels["variant_name"] for family in registry.collect() for sample in family.samples}
    assert names == {"chat"}


def test_the_labels_are_those_of_the_documentation() -> None:
    """Queries are written by the page."""
    rows = {item.name: item.labels for item in documented() if item.name.startswith("wva_")}

    assert rows == dict.fromkeys(
        ("wva_desired_replicas", "wva_current_replicas", "wva_desired_ratio"), tuple(LABELS)
    )


def test_numbers_end_with_their_objects() -> None:
    """Later cycles replace all of them."""
    registry = CollectorRegistry()
    numbers = VariantNumbers(registry)
    numbers.observe(result(1))
    numbers.observe(replace(result(1), gathered=Gathered(snapshot=Snapshot(nodes=(), variants=()))))

    assert registry.get_sample_value("wva_desired_replicas", LABELS) is None
