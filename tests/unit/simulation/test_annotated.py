"""Annotated autoscalers in closed loop: the same decisions as for VariantAutoscalings."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from controller.simulation.manifests import Manifests, manifests_of
from controller.simulation.reconciled import ReconciledPolicy
from controller.simulation.run import play
from controller.simulation.scenario import Scenario


def annotated(manifests: Manifests) -> Manifests:
    """Return manifests in which annotations say what the VariantAutoscalings say."""
    variants = {}
    for name, item in manifests.variants.items():
        spec = item.owner["spec"]
        terms = {
            "llm-d.ai/managed": "true",
            "llm-d.ai/model-id": spec["modelID"],
            "llm-d.ai/variant-cost": spec["variantCost"],
        }
        assert item.autoscaler is not None
        labels = {"inference.optimization/acceleratorName": spec["accelerator"]}
        metadata = item.autoscaler["metadata"] | {"annotations": terms, "labels": labels}
        autoscaler = item.autoscaler | {"metadata": metadata}
        variants[name] = replace(item, owner=autoscaler, autoscaler=autoscaler)
    return replace(manifests, variants=variants)


def test_annotations_have_the_outcome_of_a_variant_autoscaling(scenario: Scenario) -> None:
    """Decisions, and what is learned from cycle to cycle, are kept in records instead of statuses."""
    plain = replace(
        scenario,
        duration_seconds=300.0,
        variants=tuple(replace(item, stated_profile=None) for item in scenario.variants),
    )
    manifests = manifests_of(plain)
    outcomes = [
        asyncio.run(play(plain, ReconciledPolicy(plain, manifests=given), manifests=given))
        for given in (manifests, annotated(manifests))
    ]

    assert outcomes[0].points[-1].variants
    assert outcomes[0] == outcomes[1]
