"""Inputs of the status of a planned variant."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from apiserver.schema.json import Json
from controller.planning.snapshot import Replica, Variant
from controller.variants.status import StatusInputs
from support.decisions import SOLVED, decision
from support.observations import observed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DECISION = decision("chat")
INPUTS = StatusInputs(
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
    observed=observed("chat"),
    silence="p: no answer",
)


def finding(inputs: StatusInputs, **found: Any) -> StatusInputs:
    """Return inputs with other findings about the variant."""
    return replace(inputs, observed=replace(inputs.observed, **found))


def stored(manifest: Json, status: Json | None = None) -> Json:
    """Return a manifest as the API server would return it."""
    metadata = {"namespace": "ns", "uid": "u", "generation": 4} | manifest["metadata"]
    return manifest | {"metadata": metadata, "status": status or {}}
