"""Assemble published decisions from replica counts and reasons, for new and for held plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from controller.planning.decision import BoundBy, Decision, Reason, Relief
from controller.planning.demand import ModelDemand
from controller.planning.load import RATE_UNIT
from controller.planning.snapshot import Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why a variant gets its number of replicas."""

    bound_by: BoundBy
    reason: Reason
    message: str


def decide(
    variant: Variant,
    demand: ModelDemand,
    explanation: Explanation,
    *,
    replicas: int,
    unconstrained_replicas: int,
    unmet_per_mille: int,
    reliefs: tuple[Relief, ...] = (),
    excess: tuple[str, ...] = (),
) -> Decision:
    """Return the decision for one variant."""
    required = demand.lower_rate if demand.is_unsized else demand.required_rate
    return Decision(
        namespace=variant.namespace,
        name=variant.name,
        model_id=variant.model_id,
        accelerator=variant.accelerator,
        priority=demand.priority,
        replicas=replicas,
        current_replicas=variant.current_replicas,
        unconstrained_replicas=unconstrained_replicas,
        load=demand.load,
        required_requests_per_second=round(required * RATE_UNIT, 6),
        capacity=variant.capacity,
        unmet_per_mille=unmet_per_mille,
        bound_by=explanation.bound_by,
        reason=explanation.reason,
        message=explanation.message,
        reliefs=reliefs,
        excess=excess,
    )


def total_cost(decisions: Sequence[Decision], variants: Sequence[Variant]) -> Decimal:
    """Return the cost per hour of all granted replicas."""
    unit = {variant.key: variant.cost_per_replica for variant in variants}
    return sum((unit[d.namespace, d.name] * d.replicas for d in decisions), start=Decimal(0))
