"""The one entry: from a snapshot and what is remembered to a plan and what to remember next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning.capacity import learn
from controller.planning.case import Answer
from controller.planning.checker import check
from controller.planning.columns import ColumnModel, place
from controller.planning.decision import (
    LevelReport,
    NodePlacement,
    NodeRequest,
    Plan,
    SolverReport,
    SolverStatus,
)
from controller.planning.defragment import defragmentations
from controller.planning.demand import model_demands
from controller.planning.explain import decisions
from controller.planning.formulation import formulate
from controller.planning.hold import hold
from controller.planning.lexicographic import Limits, NoSolutionError
from controller.planning.problem import NumbersTooLargeError, Solution
from controller.planning.relief import reliefs
from controller.planning.verdict import total_cost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.decision import Relief
    from controller.planning.problem import PlacementProblem
    from controller.planning.settings import Settings
    from controller.planning.snapshot import Snapshot, Variant
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
    return made, next_state


def _answer(snapshot: Snapshot, state: PlanningState, settings: Settings) -> tuple[Answer, PlanningState]:
    nodes = sorted(snapshot.nodes, key=lambda node: node.name)
    variants = sorted(snapshot.variants, key=lambda variant: variant.key)
    capacities, next_state = learn(variants, state, settings)
    demands = model_demands(snapshot, capacities, settings)
    problem = formulate(snapshot, demands, capacities, settings=settings)
    wanted, granted = _solve(problem, settings)
    answer = Answer(
        snapshot=snapshot,
        nodes=nodes,
        demands=demands,
        capacities=capacities,
        problem=problem,
        wanted=wanted,
        granted=granted,
        settings=settings,
    )
    return answer, next_state


def _solve(problem: PlacementProblem, settings: Settings) -> tuple[Solution, Solution]:
    """Return what each model would have alone, and the answer with what there is."""
    model = ColumnModel(problem)
    return Solution(replicas=model.alone(), placements=()), model.place(_limits(settings))


def _reliefs(answer: Answer, settings: Settings) -> Mapping[int, tuple[Relief, ...]]:
    """Return what would help; all of it together may take half the effort of the plan itself."""
    most = min(settings.relief_solves, RELIEF_VARIANTS // (1 + len(answer.variants)))
    whole = _limits(settings)
    each = replace(whole, deterministic_seconds=whole.deterministic_seconds / (2 * max(1, most)))

    def again(problem: PlacementProblem) -> tuple[int, ...]:
        try:
            return place(problem, limits=each).replicas
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
    variants = [variant for demand in answer.demands for variant in demand.variants]
    made = decisions(answer)
    unproven, gap = answer.granted.unproven, answer.granted.gap
    return Plan(
        decisions=made,
        placements=tuple(
            NodePlacement(
                namespace=variants[v].namespace,
                name=variants[v].name,
                node=answer.nodes[node].name,
                replicas=count,
            )
            for v, node, count in answer.granted.placements
        ),
        cost=total_cost(made, variants),
        solver=SolverReport(
            status=SolverStatus.FEASIBLE if unproven else SolverStatus.OPTIMAL,
            unproven=unproven,
            gap=gap,
            message="",
            levels=tuple(
                LevelReport(
                    level=p.level,
                    value=p.value,
                    bound=p.bound,
                    gap=p.gap,
                    improvable=p.improvable,
                    scope=p.scope,
                )
                for p in answer.granted.proofs
            ),
        ),
        requests=tuple(_requests(answer, variants)),
        moves=tuple(
            move
            for found in defragmentations(
                answer, most=answer.settings.most_moves, limits=_limits(answer.settings)
            )
            for move in found.moves
        ),
    )


def _requests(answer: Answer, variants: Sequence[Variant]) -> Iterator[NodeRequest]:
    """Yield what is asked of each node pool."""
    pools = {pool.name: pool for pool in answer.snapshot.pools}
    for index, nodes in enumerate(answer.granted.added):
        if nodes:
            pool = pools[answer.problem.growth[index].name]
            yield NodeRequest(
                pool=pool.name,
                nodes=nodes,
                price_per_hour=nodes * pool.price_per_node,
                lead_seconds=pool.lead_seconds,
                replicas=tuple(
                    (variants[v].namespace, variants[v].name, count)
                    for v, growth, count in answer.granted.grown
                    if growth == index
                ),
            )
