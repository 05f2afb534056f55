"""The price list in `stowplan plan`: a default never hides it, and the output says where costs come from."""

from __future__ import annotations

import json

from support.manifests import deployment, listed, node, variant
from support.plan_verb import Plan

PRODUCTS = {"H100": "NVIDIA-H100-80GB-HBM3", "A100": "NVIDIA-A100-SXM4-80GB"}
PRICES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "accelerator-unit-costs", "namespace": "stowplan-system"},
    "data": {kind: json.dumps({"cost": cost}) for kind, cost in (("H100", "80.00"), ("A100", "40.00"))},
}


def fleet() -> str:
    """Return a model with a variant on each of two types, whose cost nobody wrote, as JSON."""
    made = [PRICES]
    for kind, product in PRODUCTS.items():
        name = f"m-{kind.lower()}"
        labels = {"inference.optimization/acceleratorName": kind}
        made += [
            node(name, product=product) | {"apiVersion": "v1", "kind": "Node"},
            deployment(name, product=product, accelerators=1),
            variant(name, modelID="org/model", variantCost=None, labels=labels),
        ]
    return listed(*made)


def test_the_default_cost_does_not_hide_the_price_list(plan: Plan) -> None:
    """By the list, five replicas of the cheaper type cost 200 per hour, and three of the other one 240."""
    options = ("--demand", "org/model=25", "--capacity", "m-h100=10", "--capacity", "m-a100=6")

    _, out, _ = plan("-f", "-", *options, given=fleet())
    _, document, _ = plan("-f", "-", *options, "-o", "json", given=fleet())

    assert "cost per hour: 200\n  of a replica by UnitCost (A, B)\n" in out
    decisions = json.loads(document)["plan"]["decisions"]
    assert {item["name"]: item["replicas"] for item in decisions} == {"m-a100": 5, "m-h100": 0}
