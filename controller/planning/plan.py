"""The one entry: from a snapshot and what is remembered to a plan and what to remember next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning.assembling import assembled
from controller.planning.checker import check
from controller.planning.columns import ColumnModel, place_again
from controller.planning.decision import LevelReport, SolverReport, SolverStatus
from controller.planning.defragment import defragmentations
from controller.planning.flapping import followed
from controller.planning.hold import hold
from controller.planning.lexicographic import Limits, NoSolutionError
from controller.planning.preparing import prepared
from controller.planning.problem import NumbersTooLargeError, Scope, Solution
from controller.planning.relief import reliefs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.answer import Answer
    from controller.planning.decision import Plan, Relief
    from controller.planning.problem import PlacementProblem
    from controller.planning.settings import Settings
    from controller.planning.snapshot import Snapshot
    from controller.planning.state import PlanningState


RELIEF_VARIANTS = 3_000
"""How many variants may be planned again in all, to find out what would help: a large world tries less."""


def plan(snapshot: Snapshot, state: PlanningState, settings: Settings) -> tuple[Plan, PlanningState]:
    """Return the plan and the next state; where no answer can be had or trusted, what runs stands."""
    try:
        answer, next_state = _answer(snapshot, state, settings)
    except NoSolutionError as error:
        return hold(snapshot, state, settings, status=SolverStatus.TIMED_OUT, message=str(error))
    except NumbersTooLargeError as error:
        return hold(snapshot, state, settings, status=SolverStatus.FAILED, message=str(error))
    made = _plan(replace(answer, reliefs=_reliefs(answer, settings)))
    wrong = check(snapshot, made)
    if wrong:
        message = f"the answer was refused: {'; '.join(wrong)}"
        return hold(snapshot, state, settings, status=SolverStatus.FAILED, message=message)
    return made, replace(next_state, courses=followed(snapshot, state, made.decisions, settings))


def _answer(snapshot: Snapshot, state: PlanningState, settings: Settings) -> tuple[Answer, PlanningState]:
    given = prepared(snapshot, state, settings)

    def model_of(problem: PlacementProblem) -> ColumnModel:
        return ColumnModel(problem, certifies=settings.certificate)

    model, known, is_brief = model_of(given.problem), state.prices, _is_brief(snapshot, state, settings)
    # Alone they would have what nothing holds them from: it tells what did.
    unheld = (
        model if given.plain_problem.variants == given.problem.variants else model_of(given.plain_problem)
    )
    wanted = Solution(replicas=unheld.alone(), placements=())

    def placed(problem: PlacementProblem) -> Solution:
        """Place with the columns that are there, or with new ones where limits are tighter."""
        nonlocal known
        here = model if problem is given.problem else model_of(problem)
        solution = here.place(_limits(settings), known=known, is_brief=is_brief)
        known = solution.prices or known
        return solution

    answer = given.granted(placed)
    thorough_seconds = state.thorough_seconds if is_brief else snapshot.taken_seconds
    return replace(answer, wanted=wanted), replace(
        given.next_state,
        prices=known,
        # Prices of an earlier scarcity say nothing about how near one comes to a bound in the next one.
        thorough_seconds=thorough_seconds if answer.granted.prices else 0.0,
    )


def _is_brief(snapshot: Snapshot, state: PlanningState, settings: Settings) -> bool:
    """Tell whether a thorough search is so recent that one as good as it will do."""
    if not snapshot.taken_seconds or not state.thorough_seconds:
        return False
    return 0 <= snapshot.taken_seconds - state.thorough_seconds < settings.thorough_seconds


def _reliefs(answer: Answer, settings: Settings) -> Mapping[int, tuple[Relief, ...]]:
    """Return what would help; all of it together may take half the effort of the plan itself."""
    most = min(settings.relief_solves, RELIEF_VARIANTS // (1 + len(answer.variants)))
    whole = _limits(settings)
    each = replace(whole, deterministic_seconds=whole.deterministic_seconds / (2 * max(1, most)))

    def again(problem: PlacementProblem) -> tuple[int, ...]:
        try:
            return place_again(problem, limits=each, like=answer.granted, is_rough=True).replicas
        except (NoSolutionError, NumbersTooLargeError):
            return answer.granted.replicas  # nothing is known to help, which is no reason to lose the plan

    return reliefs(answer, again, most_solves=most, limits=each)


def _limits(settings: Settings) -> Limits:
    return Limits(
        deterministic_seconds=settings.deterministic_seconds,
        wall_seconds=settings.wall_seconds,
        seed=settings.seed,
    )


def _plan(answer: Answer) -> Plan:
    found = defragmentations(answer, most=answer.settings.most_moves, limits=_limits(answer.settings))
    return assembled(answer, _report(answer.granted), tuple(move for group in found for move in group.moves))


def _report(granted: Solution) -> SolverReport:
    """Return what can be said for an answer: it is optimal where no replica mix at all is better."""
    unproven = next((proof for proof in granted.proofs if proof.bound_of_all != proof.value), None)
    return SolverReport(
        status=SolverStatus.FEASIBLE if unproven else SolverStatus.OPTIMAL,
        unproven=unproven.level if unproven else "",
        gap=unproven.widest_gap if unproven else 0.0,
        scope=unproven.widest_scope if unproven else Scope.EVERYTHING,
        message="",
        levels=tuple(
            LevelReport(
                level=p.level,
                value=p.value,
                bound=p.bound,
                gap=p.gap,
                improvable=p.improvable,
                scope=p.scope,
                bound_of_all=p.bound_of_all,
                improvable_of_all=p.improvable_of_all,
            )
            for p in granted.proofs
        ),
    )
