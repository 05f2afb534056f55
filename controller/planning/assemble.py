"""Assemble published decisions from replica counts and reasons, for new and for held plans.

A held plan is the fallback: every variant keeps its current replicas, or its last published ones if more. It
needs no solver, so a process without one can use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from controller.planning.decision import (
    BoundBy,
    Plan,
    Reason,
    Relief,
    SolverReport,
    SolverStatus,
    VariantDecision,
)
from controller.planning.demand import ModelDemand, model_demands, provided_rate
from controller.planning.formulation import held_replicas
from controller.planning.inputs import Settings
from controller.planning.load import RATE_UNIT
from controller.planning.problem import per_mille_missing
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count


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
) -> VariantDecision:
    """Return the decision for one variant."""
    required = demand.lower_rate if demand.is_unsized else demand.required_rate
    return VariantDecision(
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


def total_cost(decisions: Sequence[VariantDecision], variants: Sequence[Variant]) -> Decimal:
    """Return the cost per hour of all granted replicas."""
    unit = {variant.key: variant.cost_per_replica for variant in variants}
    return sum((unit[d.namespace, d.name] * d.replicas for d in decisions), start=Decimal(0))


def hold(
    snapshot: Snapshot,
    settings: Settings,
    *,
    status: SolverStatus,
    message: str,
    detail: str = "",
) -> Plan:
    """Return a plan that changes nothing, with the reason.

    `detail` may name any workload. Decisions include it if `settings.names_all`, and `message` otherwise.
    """
    text = detail if detail and settings.names_all else message
    made = [decision for demand in model_demands(snapshot) for decision in _hold(demand, text)]
    return Plan(
        decisions=tuple(sorted(made, key=lambda decision: (decision.namespace, decision.name))),
        placements=(),
        cost=total_cost(made, snapshot.variants),
        solver=SolverReport(status=status, unproven="", gap=1.0, message=detail or message),
    )


def _hold(demand: ModelDemand, why: str) -> Iterator[VariantDecision]:
    provided = provided_rate(demand.variants, [held_replicas(variant) for variant in demand.variants])
    unmet = per_mille_missing(demand.required_rate, provided)
    for variant in demand.variants:
        held = held_replicas(variant)
        message = f"{variant.name} stays at {count(held, 'replica')}: {why}"
        yield decide(
            variant,
            demand,
            Explanation(bound_by=BoundBy.SOLVER, reason=Reason.HOLDING, message=message),
            replicas=held,
            unconstrained_replicas=held,
            unmet_per_mille=unmet,
        )
