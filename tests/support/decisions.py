"""Decisions for tests: of a model with a shortage, and a load that is forecast to grow. Plans with them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from controller.planning.decision import BoundBy, Plan, Reason, SolverReport, SolverStatus, VariantDecision
from controller.planning.load import Capacity, CapacitySource, LimitingTarget, ModelLoad, ReplicaRateLimit

LOAD = ModelLoad(
    namespace="ns",
    model_id="m",
    signal_age_seconds=1.5,
    ready_replicas=2,
    requests_per_second=41.0,
    upper_requests_per_second=52.25,
    start_seconds=140.2,
    backlog_requests=7.4,
    prompt_tokens=1155.04,
    output_tokens=211.0,
    required_requests_per_second=61.470588,
    releasable_requests_per_second=70.0,
)
CAPACITY = Capacity(
    requests_per_second=9.4,
    source=CapacitySource.LEARNED,
    limits=(
        ReplicaRateLimit(target=LimitingTarget.TTFT, text="TTFT 2 s", requests_per_second=9.4),
        ReplicaRateLimit(target=LimitingTarget.ITL, text="ITL 80 ms", requests_per_second=11.0),
    ),
)


def decision(name: str, **changes: Any) -> VariantDecision:
    """Return a decision about a variant."""
    fields: dict[str, Any] = {
        "namespace": "ns",
        "name": name,
        "model_id": LOAD.model_id,
        "accelerator": "A100",
        "priority": 1,
        "replicas": 3,
        "current_replicas": 2,
        "unconstrained_replicas": 7,
        "load": LOAD,
        "required_requests_per_second": LOAD.required_requests_per_second,
        "capacity": CAPACITY,
        "unmet_per_mille": 250,
        "bound_by": BoundBy.ACCELERATORS,
        "reason": Reason.SHORTAGE,
        "message": f"{name} goes short",
    }
    return VariantDecision(**fields | changes)


SOLVED = SolverReport(status=SolverStatus.OPTIMAL, unproven="", gap=0.0, message="")


def plan_of(*decisions: VariantDecision, **parts: Any) -> Plan:
    """Return a plan with some decisions, proven optimal; by default without placements."""
    fields: dict[str, Any] = {"placements": (), "cost": Decimal(0), "solver": SOLVED}
    return Plan(decisions=decisions, **fields | parts)
