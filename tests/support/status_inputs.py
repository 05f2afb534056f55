"""Inputs of the status of a planned variant."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from apiserver.schema.json import Json
from controller.observe.conditions import ConditionReason
from controller.planning.snapshot import Replica, Variant
from controller.variants.status import StatusInputs
from support.decisions import SOLVED, decision

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DECISION = decision("chat")
INPUTS = StatusInputs(
    kind="Deployment",
    variant=Variant(
        namespace="ns",
        name="chat",
        model_id="m",
        accelerator="A100",
        accelerators_per_replica=1,
        cost_per_replica=Decimal("40.00"),
        current_replicas=2,
        replicas=(Replica(name="p", node="n", ready=True),),
        start_seconds=140.2,
    ),
    decision=DECISION,
    solver=SOLVED,
    cost_source="UnitCost",
    silence="p: no answer",
    service_class=(True, ConditionReason.CLASS_FOUND, "service class 'Premium', priority 1"),
    orders=(True, ConditionReason.NO_ANNOTATIONS, "no annotation stowplan.dev/... has an effect"),
    unheeded="",
    advice=None,
)


def stored(manifest: Json, status: Json | None = None) -> Json:
    """Return a manifest as the API server would return it."""
    metadata = {"namespace": "ns", "uid": "u", "generation": 4} | manifest["metadata"]
    return manifest | {"metadata": metadata, "status": status or {}}
