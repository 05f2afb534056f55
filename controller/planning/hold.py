"""The fallback plan: every variant keeps its current replicas, or its last published ones if more.

It needs no solver, so a process without one can use it.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.planning.assemble import Explanation, decide, total_cost
from controller.planning.decision import BoundBy, Decision, Plan, Reason, SolverReport, SolverStatus
from controller.planning.demand import ModelDemand, model_demands, provided_rate
from controller.planning.formulation import held_replicas
from controller.planning.problem import per_mille_missing
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from controller.planning.wording import count


def hold(
    snapshot: Snapshot,
    state: PlanningState,
    settings: Settings,
    *,
    status: SolverStatus,
    message: str,
    detail: str = "",
) -> tuple[Plan, PlanningState]:
    """Return a plan that changes nothing, with the reason, and the unchanged state.

    `detail` may name any workload. Decisions include it if `settings.names_all`, and `message` otherwise.
    """
    told = detail if detail and settings.names_all else message
    made = [decision for demand in model_demands(snapshot) for decision in _hold(demand, told)]
    plan = Plan(
        decisions=tuple(sorted(made, key=lambda decision: (decision.namespace, decision.name))),
        placements=(),
        cost=total_cost(made, snapshot.variants),
        solver=SolverReport(status=status, unproven="", gap=1.0, message=detail or message),
    )
    return plan, state


def _hold(demand: ModelDemand, why: str) -> Iterator[Decision]:
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
