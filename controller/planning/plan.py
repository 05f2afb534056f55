"""The entry point of planning: from a snapshot to a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from controller.planning.assemble import hold, total_cost
from controller.planning.checker import check
from controller.planning.cpsat import Effort
from controller.planning.decision import (
    LevelReport,
    NodePlacement,
    NodeRequest,
    Plan,
    Relief,
    SolverReport,
    SolverStatus,
)
from controller.planning.defragment import defragmentations
from controller.planning.engine import alone, place
from controller.planning.explain import decisions
from controller.planning.incomplete import complete
from controller.planning.inputs import Settings
from controller.planning.omission import comparable
from controller.planning.pairs import MOST_SOLVES, pairs_of, place_pairs
from controller.planning.preparing import PreparedProblem, prepare
from controller.planning.problem import (
    NumbersTooLargeError,
    Solution,
    unavoidable_shortfalls,
)
from controller.planning.relief import reliefs
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.solved_problem import SolvedProblem
from controller.planning.wording import count

RELIEF_VARIANTS = 150
"""Number of variants that may usually be replanned in total to find reliefs; at least one change is tried."""

MOST_VARIANTS = 3_000
"""Number of variants in the snapshot above which nothing is replanned to find reliefs; moves remain."""


def plan(snapshot: Snapshot, settings: Settings) -> Plan:
    """Return the plan; without a valid answer, the current replicas are kept."""
    whole = complete(snapshot)
    some = comparable(whole.snapshot, settings)
    given = some.prepared
    solved = _solve(given)
    # The optimum of each model alone shows what it would have without the others.
    solved = replace(solved, unconstrained=alone(given.plain_problem))
    made = whole.with_places(_plan(replace(solved, reliefs=_reliefs(solved))))
    made = some.with_omissions(made, snapshot)
    wrong = check(snapshot, made)
    if wrong:
        message = f"the answer was refused: {count(len(wrong), 'rule')} would be broken"
        detail = f"{message}: {'; '.join(wrong)}"
        return hold(snapshot, settings, status=SolverStatus.FAILED, message=message, detail=detail)
    return made


def _solve(prepared: PreparedProblem, *, closes_gaps: bool = True) -> SolvedProblem:
    effort = _effort(prepared.settings)
    place_one = partial(place, effort=effort, closes_gaps=closes_gaps)
    # All further solves for pairs together take about as much effort as the first one.
    share = replace(
        effort,
        deterministic_seconds=effort.deterministic_seconds / MOST_SOLVES,
        wall_seconds=effort.wall_seconds / MOST_SOLVES,
    )
    again = partial(place, effort=share, closes_gaps=False)
    pairs = pairs_of(prepared.snapshot, prepared.demands)
    return prepared.grant(partial(place_pairs, pairs=pairs, place=place_one, again=again))


def _reliefs(solved: SolvedProblem) -> Mapping[int, tuple[Relief, ...]]:
    """Return the reliefs of each model, found by planning again in the same way, but for proofs."""
    size, settings = len(solved.variants), solved.settings
    # If a level is unproven, another plan takes as much effort as there is.
    usual = 1 if solved.granted.unproven else max(1, RELIEF_VARIANTS // (1 + size))

    def again(changed: Snapshot) -> SolvedProblem | None:
        try:
            return _solve(prepare(complete(changed).snapshot, settings), closes_gaps=False)
        except NumbersTooLargeError:
            return None  # a relief that cannot be computed must not cost the plan

    most = settings.relief_solves if size <= MOST_VARIANTS else 0
    return reliefs(solved, again, usual_solves=usual, most_solves=most, effort=_effort(settings))


def _effort(settings: Settings) -> Effort:
    return Effort(
        deterministic_seconds=settings.deterministic_seconds,
        wall_seconds=settings.wall_seconds,
        seed=settings.seed,
    )


def _report(granted: Solution, unavoidable: Mapping[str, int]) -> SolverReport:
    """Return the solver's report: optimal if every level is proven over all replica mixes.

    Levels are reported without what no plan can avoid.
    """
    proofs = tuple([proof.without(unavoidable.get(proof.level, 0)) for proof in granted.proofs])
    unproven = next((proof for proof in proofs if proof.gap), None)
    return SolverReport(
        status=SolverStatus.FEASIBLE if unproven else SolverStatus.OPTIMAL,
        unproven=unproven.level if unproven else "",
        gap=unproven.gap if unproven else 0.0,
        message="",
        levels=tuple(
            LevelReport(
                level=proof.level,
                value=proof.value,
                bound=proof.bound,
                gap=proof.gap,
                improvable=proof.improvable,
            )
            for proof in proofs
        ),
    )


def _plan(solved: SolvedProblem) -> Plan:
    """Return the plan for a solved problem, with the evictions to make."""
    groups = defragmentations(solved, most=solved.settings.most_moves, effort=_effort(solved.settings))
    variants = solved.variants
    made = decisions(solved)
    return Plan(
        decisions=made,
        placements=tuple(
            NodePlacement(
                namespace=variants[v].namespace,
                name=variants[v].name,
                node=solved.nodes[node].name,
                pods=count,
            )
            for v, node, count in solved.granted.placements
        ),
        cost=total_cost(made, variants),
        solver=_report(solved.granted, unavoidable_shortfalls(solved.problem)),
        requests=tuple(_requests(solved, variants)),
        moves=tuple(move for group in groups for move in group.moves),
    )


def _requests(solved: SolvedProblem, variants: Sequence[Variant]) -> Iterator[NodeRequest]:
    pools = {pool.name: pool for pool in solved.snapshot.pools}
    for index, nodes in enumerate(solved.granted.added):
        if nodes:
            pool = pools[solved.problem.growth[index].name]
            yield NodeRequest(
                pool=pool.name,
                nodes=nodes,
                price_per_hour=nodes * pool.price_per_node,
                lead_seconds=pool.lead_seconds,
                pods=tuple(
                    (variants[v].namespace, variants[v].name, count)
                    for v, growth, count in solved.granted.grown
                    if growth == index
                ),
            )
