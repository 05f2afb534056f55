"""Explanations of annotated autoscalers, from their record, and of what is missing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support.annotated import Objects, hpa, made_by_keda, scaled_object
from support.manifests import variant

from apiserver.kinds.decision_record import record_text
from apiserver.schema.json import Json
from controller.commands.explain.evidence import NoSuchObjectError, collect
from controller.commands.explain.variant import explain_variant, variant_parts
from controller.commands.plan.terminal import print_lines, terminal
from controller.observe.claim import OwnerKind

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATUS: Json = {
    "desiredOptimizedAlloc": {"numReplicas": 2, "lastRunTime": "2026-01-01T11:59:48Z"},
    "currentAlloc": {"accelerator": "A100", "numReplicas": 1, "variantCost": "5"},
    "decision": {
        "reason": "ScaleUp",
        "message": "chat goes from 1 to 2 replicas",
        "costPerReplica": "5",
        "costSource": "VariantCost",
        "grantedReplicas": 2,
    },
}


def records(value: Json) -> Json:
    """Return the ConfigMap with the record of one autoscaler."""
    data = {value["metadata"]["uid"]: record_text(value, {"model_id": "m"}, STATUS)}
    metadata = {"namespace": "ns", "name": "stowplan-decisions"}
    return {"kind": "ConfigMap", "metadata": metadata, "data": data}


async def told(kind: OwnerKind, *objects: Json, name: str = "chat") -> str:
    """Return the explanation of an autoscaler, in one line."""
    evidence = await collect(
        Objects(*objects).cluster, kind, namespace="ns", name=name, system="stowplan-system"
    )
    text = print_lines(variant_parts(explain_variant(evidence, now=NOW)), terminal(100))
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("chat")),
        (OwnerKind.SCALED_OBJECT, scaled_object("chat", "chat")),
    ],
    ids=["hpa", "so"],
)
async def test_the_record_is_explained_like_a_status(kind: OwnerKind, value: Json) -> None:
    """The cost is that of its annotation."""
    text = await told(kind, value, records(value))

    assert text.startswith("ns/chat meta/llama-3.1-8b on A100 chat goes from 1 to 2 replicas")
    assert "1 now, 2 granted" in text
    assert "decided ScaleUp, 12 s ago" in text
    assert "5 per replica (VariantCost: llm-d.ai/variant-cost)" in text
    assert "the scale target Deployment 'chat' does not exist" in text


async def test_without_a_record_the_component_may_be_missing() -> None:
    """The controller may not run, either."""
    text = await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("chat"))

    assert "no decision yet: install the component 'annotated' (docs/annotated.md), or check whether" in text


async def test_an_autoscaler_that_is_not_managed_is_not_explained() -> None:
    """The message says which annotation is missing."""
    with pytest.raises(NoSuchObjectError, match=r'no annotation llm-d\.ai/managed: "true"'):
        await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("chat", terms={"llm-d.ai/managed": "no"}))


async def test_the_copy_of_keda_leads_to_the_scaled_object() -> None:
    """It has the annotations, and no decision of its own."""
    with pytest.raises(NoSuchObjectError, match="is KEDA's, for ScaledObject 'chat': use so/chat"):
        await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, made_by_keda("chat", "chat"), name="keda-hpa-chat")


async def test_a_missing_autoscaler_is_told_with_the_others() -> None:
    """As for VariantAutoscalings."""
    with pytest.raises(NoSuchObjectError, match=r"no HorizontalPodAutoscaler 'chat' .* namespace: code"):
        await told(OwnerKind.HORIZONTAL_POD_AUTOSCALER, hpa("code"), variant("chat"))
