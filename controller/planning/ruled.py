"""Plans by the rules of other autoscalers: chosen by a person, or fallen back on. Needs no solver.

Nobody proves anything of such a plan: its bound and gap are not known. Nodes that could be added, the prices
of starting and stopping and the continuity of what serves are not known to these rules.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning.assembling import assembled
from controller.planning.checker import check
from controller.planning.decision import SolverReport, SolverStatus
from controller.planning.flapping import followed
from controller.planning.hold import hold
from controller.planning.preparing import prepared
from controller.planning.problem import Bin, Solution
from controller.planning.settings import Fallback, Strategy
from controller.planning.strategies import COUNTS, STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.decision import Plan
    from controller.planning.problem import PlacementProblem
    from controller.planning.settings import Settings
    from controller.planning.snapshot import Snapshot
    from controller.planning.state import PlanningState

# To standard error where nothing is set up: verbs that plan from files print their answers.
_log = logging.getLogger(__name__)


def ruled(snapshot: Snapshot, state: PlanningState, settings: Settings) -> tuple[Plan, PlanningState]:
    """Return the plan of the strategy that the settings choose, and the next state; else the fallback's."""
    report = SolverReport(
        status=SolverStatus.FEASIBLE, unproven="", gap=None, message="", strategy=settings.strategy
    )
    made = _by_rule(snapshot, state, settings, report)
    if isinstance(made, str):
        return fall_back(snapshot, state, settings, status=SolverStatus.FAILED, message=made)
    return made


def asked(
    snapshot: Snapshot, state: PlanningState, settings: Settings, strategy: Strategy
) -> Mapping[tuple[str, str], int]:
    """Return the replicas of each variant that a strategy asks for, before limits and nodes cut them."""
    given = prepared(snapshot, state, settings)
    variants = [variant for demand in given.demands for variant in demand.variants]
    counts = COUNTS[strategy](given.problem)
    return {variant.key: count for variant, count in zip(variants, counts, strict=True)}


def fall_back(
    snapshot: Snapshot, state: PlanningState, settings: Settings, *, status: SolverStatus, message: str
) -> tuple[Plan, PlanningState]:
    """Return what is done without an answer, with the reason why there is none, and the next state.

    A rule that was chosen to decide and did not is not asked again to be its own fallback.
    """
    if settings.fallback not in {Fallback.HOLD, settings.strategy}:
        report = SolverReport(
            status=status, unproven="", gap=None, message=message, strategy=settings.fallback
        )
        made = _by_rule(snapshot, state, settings, report)
        if not isinstance(made, str):
            return made
        message = f"{message}; {made}"
    return hold(snapshot, state, settings, status=status, message=message)


def _by_rule(
    snapshot: Snapshot, state: PlanningState, settings: Settings, report: SolverReport
) -> tuple[Plan, PlanningState] | str:
    """Return the plan of a strategy and the next state, or why there is none that may be used."""
    try:
        made, next_state = _applied(snapshot, state, settings, report)
        wrong = check(snapshot, made)
    except Exception as error:  # noqa: BLE001 (the boundary: a rule that breaks must not lose the cycle)
        _log.exception("%s failed", report.strategy)
        return f"{report.strategy} failed: {type(error).__name__}: {error}"
    if wrong:
        return f"the answer of {report.strategy} was refused: {'; '.join(wrong)}"
    return made, next_state


def _applied(
    snapshot: Snapshot, state: PlanningState, settings: Settings, report: SolverReport
) -> tuple[Plan, PlanningState]:
    """Return the plan of a strategy, unchecked, and the next state."""
    given = prepared(snapshot, state, settings)
    strategy = Strategy(report.strategy)
    wanted = Solution(replicas=COUNTS[strategy](endless(given.problem)), placements=())
    answer = replace(given.granted(STRATEGIES[strategy], strategy), wanted=wanted)
    made = _signed(assembled(answer, report))
    courses = followed(snapshot, state, made.decisions, settings)
    return made, replace(given.next_state, courses=courses)


def endless(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem with one node that has room for everything."""
    users = tuple(v for v, terms in enumerate(problem.variants) if terms.accelerators)
    room = sum(terms.accelerators * (terms.upper + len(terms.bound)) for terms in problem.variants)
    everywhere = Bin(
        nodes=(len(problem.free),),
        sizes=tuple(sorted({problem.variants[v].accelerators for v in users})),
        variants=users,
    )
    return replace(problem, free=(*problem.free, room), bins=(everywhere,), limits=())


def _signed(plan: Plan) -> Plan:
    """Return the plan with its maker in every sentence."""
    solver = plan.solver
    maker = f"{solver.strategy} decided, because {solver.message}" if solver.message else ""
    words = maker or f"decided by {solver.strategy}"
    return replace(
        plan, decisions=tuple(replace(item, message=f"{item.message}; {words}") for item in plan.decisions)
    )
