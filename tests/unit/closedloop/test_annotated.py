"""Annotated autoscalers in closed loop: the same decisions as for VariantAutoscalings."""

from __future__ import annotations

from dataclasses import replace

from controller.closedloop.manifests import Manifests, manifests_of
from controller.closedloop.reconciled import ReconciledPolicy
from controller.closedloop.run import run
from controller.closedloop.scenario import Scenario


def annotated(manifests: Manifests) -> Manifests:
    """Return manifests in which annotations say what the VariantAutoscalings say."""
    autoscalers = {}
    for name, item in manifests.autoscalers.items():
        spec = manifests.autoscalings[name]["spec"]
        terms = {
            "llm-d.ai/managed": "true",
            "llm-d.ai/model-id": spec["modelID"],
            "llm-d.ai/variant-cost": spec["variantCost"],
        }
        labels = {"inference.optimization/acceleratorName": spec["accelerator"]}
        metadata = item["metadata"] | {"annotations": terms, "labels": labels}
        autoscalers[name] = item | {"metadata": metadata}
    return replace(manifests, autoscalings={}, autoscalers=autoscalers, annotated=autoscalers)


def test_annotations_have_the_outcome_of_a_variant_autoscaling(scenario: Scenario) -> None:
    """Decisions, and what is learned from cycle to cycle, are kept in records instead of statuses."""
    plain = replace(
        scenario,
        duration_seconds=300.0,
        variants=tuple(replace(item, stated_profile=None) for item in scenario.variants),
    )
    manifests = manifests_of(plain)
    outcomes = [
        run(plain, ReconciledPolicy(plain, manifests=given), manifests=given)
        for given in (manifests, annotated(manifests))
    ]

    assert outcomes[0].points[-1].variants
    assert outcomes[0] == outcomes[1]
