"""Prices and service classes out of ConfigMaps."""

from __future__ import annotations

from decimal import Decimal

from controller.observe.policies import read_policies, service_class

PREMIUM = "name: Premium\npriority: 1\ndata:\n- {model: llama, slo-tpot: 24, slo-ttft: 500}\n"
FREE = (
    "name: Free\npriority: 1000\ndata:\n- {model: llama, slo-tpot: 200}\n- {model: granite, slo-ttft: 900}\n"
)


def test_prices_and_classes_are_read_and_errors_are_named() -> None:
    """One typing error does not hide the rest."""
    policies = read_policies(
        {
            "costs": {"data": {"NVIDIA-A100-PCIE-80GB": '{"device": "x", "cost": "40.00"}', "H100": "100"}},
            "classes": {"data": {"premium.yaml": PREMIUM, "free.yaml": FREE, "bad.yaml": "priority: high"}},
            "unrelated": {"data": {"key": "just text"}},
        },
        unit_costs="costs",
    )

    assert policies.unit_costs == {"A100": Decimal("40.00")}
    assert policies.classes["classes", "premium.yaml"].priority == 1
    assert policies.classes["classes", "premium.yaml"].ttft_ms == {"llama": 500}
    assert policies.classes["classes", "free.yaml"].priority == 100
    assert len(policies.problems) == 3
    assert policies.problems[0].startswith("ConfigMap classes, key bad.yaml: priority must be an integer")
    assert policies.problems[1].endswith("priority 1000 is not within 1..100 and counts as 100")
    assert policies.problems[2].startswith("ConfigMap costs, key H100: must be JSON")


def test_a_reference_wins_and_without_one_the_highest_priority_that_lists_the_model() -> None:
    """The look-up is deterministic."""
    policies = read_policies({"c": {"data": {"a": FREE, "b": PREMIUM}}}, unit_costs="costs")

    by_reference = service_class(policies, {"name": "c", "key": "a"}, "llama")
    by_model = service_class(policies, None, "llama")
    assert by_reference is not None
    assert by_reference.name == "Free"
    assert by_model is not None
    assert by_model.name == "Premium"
    assert service_class(policies, None, "unknown") is None
    assert service_class(policies, {"name": "c", "key": "missing"}, "llama") is None
