"""Placement of models whose requests need pods of several roles: one role without the other is of no use.

The program minimizes the shortfalls of both roles separately, and so fills the one whose capacity takes fewer
accelerators. With 5 accelerators for 2 replicas of prefill and 8 of decode, it would serve 3 / 8 of the
requests, with 2 and 3 of them, and not a half, with 1 and 4. So a share of the requests is searched by
bisection that both roles reach: the requirements of both are reduced to it, and the others get the rest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter

from controller.planning.demand import ModelDemand
from controller.planning.problem import (
    UNLIMITED_REPLICAS,
    CoverRow,
    PlacementProblem,
    Proof,
    Solution,
    Stage,
    level_name,
    provided_by,
)
from controller.planning.snapshot import DECODE, PREFILL, RoleRatio, Snapshot, Variant

_STEPS = 4
"""Solves of the bisection: the share is within a sixteenth of the difference between the roles, as far as
whole replicas allow."""

MOST_SOLVES = _STEPS + 3
"""The number of solves after the first one."""

_EVEN = Fraction(1, 100)
"""Shares of two roles that differ by less are equal."""

_SHARED = (Stage.LOAD, Stage.DEMAND)
"""The stages at which requirements follow from requests."""

Place = Callable[[PlacementProblem], Solution]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """The roles of one model."""

    models: tuple[int, ...]
    """Indices of the models as they are planned, one for each role."""

    ratio: tuple[int, int, RoleRatio] | None = None
    """The models of prefill and decode, and how many replicas of the former one of the latter needs."""

    allowed: tuple[tuple[int, int], ...] = ()
    """The variants of all roles, with the maximum of their replicas."""


def pairs_of(snapshot: Snapshot, demands: Sequence[ModelDemand]) -> tuple[Pair, ...]:
    """Return the models of which several roles are planned."""
    models: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    allowed: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    place = 0
    for index, demand in enumerate(demands):
        first = demand.variants[0]
        if first.role:
            models[first.namespace, first.pair][first.role] = index
            own = enumerate(demand.variants, start=place)
            allowed[first.namespace, first.pair] += [(v, _most_replicas(item)) for v, item in own]
        place += len(demand.variants)
    ratios = {(item.namespace, item.pair): item for item in snapshot.ratios}
    return tuple(
        Pair(models=tuple(own.values()), ratio=_ratio(ratios.get(key), own), allowed=tuple(allowed[key]))
        for key, own in sorted(models.items())
        if len(own) > 1
    )


def _most_replicas(variant: Variant) -> int:
    return UNLIMITED_REPLICAS if variant.max_replicas is None else variant.max_replicas


def _ratio(stated: RoleRatio | None, models: Mapping[str, int]) -> tuple[int, int, RoleRatio] | None:
    if stated is None or not models.keys() >= {PREFILL, DECODE}:
        return None
    return models[PREFILL], models[DECODE], stated


def place_pairs(problem: PlacementProblem, *, pairs: Sequence[Pair], place: Place, again: Place) -> Solution:
    """Return a solution in which the roles of each model serve about the same share of its requests.

    `place` solves the problem, and `again` problems that differ a little, with less effort.
    """
    first = place(problem)
    evened, best = _even(problem, first, pairs, again)
    evened, best = _without_halves(evened, best, pairs, again)
    if rows := tuple(_rows_of_ratios(problem, best, pairs)):
        tried = again(_with_rows(evened, rows, pairs))
        if _least(problem, tried, pairs) >= _least(problem, best, pairs):
            best = tried
    return best if best is first else replace(best, proofs=tuple(_true_proofs(problem, best, first)))


def _least(problem: PlacementProblem, solution: Solution, pairs: Sequence[Pair]) -> Fraction:
    """Return the sum of the shares of requests that the pairs serve."""
    shares = _shares(problem, solution)
    return sum((_bounds(pair, shares)[0] for pair in pairs), Fraction(0))


def _even(
    problem: PlacementProblem, first: Solution, pairs: Sequence[Pair], again: Place
) -> tuple[PlacementProblem, Solution]:
    """Return a problem with the shares of requests that all roles reach, and its solution."""
    shares = _shares(problem, first)
    bounds = {pair: _bounds(pair, shares) for pair in pairs}
    uneven = {pair: bound for pair, bound in bounds.items() if bound[1] - bound[0] > _EVEN}
    if not uneven:
        return problem, first
    reachable = {pair: low for pair, (low, _) in uneven.items()}
    for _ in range(_STEPS):
        goals = {pair: (low + high) / 2 for pair, (low, high) in uneven.items()}
        tried = again(_scale_requirements(problem, goals))
        shares = _shares(problem, tried)
        for pair, (low, high) in uneven.items():
            least, goal = _bounds(pair, shares)[0], goals[pair]
            uneven[pair] = (goal, high) if least >= goal else (low, goal)
            reachable[pair] = max(reachable[pair], least)
    # What exceeds the share of the other role is of no use: others may need the room.
    evened = _scale_requirements(problem, reachable)
    last = again(evened)
    if _least(problem, last, pairs) >= _least(problem, first, pairs):
        return evened, last
    return problem, first


def _without_halves(
    problem: PlacementProblem, solution: Solution, pairs: Sequence[Pair], again: Place
) -> tuple[PlacementProblem, Solution]:
    """Return a problem without the pairs of which only some roles would start, and its solution."""
    variants = _variants_of(problem)
    halves: set[int] = set()
    for pair in pairs:
        own = [variants.get(model, ()) for model in pair.models]
        counts = [sum(solution.replicas[v] for v in some) for some in own]
        is_new = not any(problem.variants[v].current for some in own for v in some)
        if is_new and any(counts) and not all(counts):
            halves |= set(pair.models)
    if not halves:
        return problem, solution
    alone = replace(problem, rows=tuple(row for row in problem.rows if row.model not in halves))
    return alone, again(alone)


def _variants_of(problem: PlacementProblem) -> Mapping[int, Sequence[int]]:
    variants: dict[int, set[int]] = defaultdict(set)
    for row in problem.rows:
        variants[row.model] |= {v for v, _ in row.terms}
    return {model: sorted(own) for model, own in variants.items()}


def _shares(problem: PlacementProblem, solution: Solution) -> Mapping[int, Fraction]:
    """Return the share of its required capacity that each model gets, at most 1."""
    shares: dict[int, Fraction] = {}
    for row in problem.rows:
        if row.stage is Stage.DEMAND and _is_capacity(row):
            share = Fraction(provided_by(problem, row, solution.replicas), row.requirement)
            shares[row.model] = min(shares.get(row.model, Fraction(1)), share)
    return shares


def _bounds(pair: Pair, shares: Mapping[int, Fraction]) -> tuple[Fraction, Fraction]:
    own = [shares.get(model, Fraction(1)) for model in pair.models]
    return min(own), max(own)


def _scale_requirements(problem: PlacementProblem, goals: Mapping[Pair, Fraction]) -> PlacementProblem:
    """Return the problem with a share of the requirements of each pair."""
    goal_of = {model: goal for pair, goal in goals.items() for model in pair.models}

    def scale(row: CoverRow) -> CoverRow:
        goal = goal_of.get(row.model) if row.stage in _SHARED and _is_capacity(row) else None
        return row if goal is None else replace(row, requirement=max(1, math.ceil(goal * row.requirement)))

    return replace(problem, rows=tuple(map(scale, problem.rows)))


def _is_capacity(row: CoverRow) -> bool:
    """Return whether a row requires a capacity, and not a number of replicas."""
    # Capacity is in millionths of a request per second; replicas count 1 each.
    return any(amount != 1 for _, amount in row.terms)


def _rows_of_ratios(
    problem: PlacementProblem, solution: Solution, pairs: Sequence[Pair]
) -> Iterator[CoverRow]:
    """Yield the replicas that the roles need for their ratio, given those of the others.

    They come after all demand: a ratio takes room that is left.
    """
    variants = _variants_of(problem)
    for pair in pairs:
        if pair.ratio is None:
            continue
        prefill, decode, ratio = pair.ratio
        counts = {m: sum(solution.replicas[v] for v in variants.get(m, ())) for m in (prefill, decode)}
        # The texts of the numbers are exact, and the numbers are not.
        most = Fraction(str(ratio.most)) if ratio.most else None
        needed = {
            prefill: math.ceil(Fraction(str(ratio.least)) * counts[decode]),
            decode: math.ceil(counts[prefill] / most) if most else 0,
        }
        for model, replicas in needed.items():
            if replicas > counts[model] and (own := variants.get(model)):
                yield CoverRow(
                    name="ratio of roles",
                    stage=Stage.CONTINUITY,
                    priority=0,
                    model=model,
                    requirement=replicas,
                    terms=tuple((v, 1) for v in own),
                )


def _with_rows(
    problem: PlacementProblem, rows: Sequence[CoverRow], pairs: Sequence[Pair]
) -> PlacementProblem:
    """Return the problem with more rows, and as many replicas as they need beyond what the load needs."""
    needed = {v: row.requirement for row in rows for v, _ in row.terms}
    most = {v: limit for pair in pairs for v, limit in pair.allowed}
    variants = tuple(
        replace(terms, upper=max(terms.upper, min(most[v], needed[v]))) if v in needed else terms
        for v, terms in enumerate(problem.variants)
    )
    # Rows of one model stay contiguous.
    every = tuple(sorted((*problem.rows, *rows), key=attrgetter("model")))
    return replace(problem, variants=variants, rows=every)


def _true_proofs(problem: PlacementProblem, chosen: Solution, first: Solution) -> Iterator[Proof]:
    """Yield proofs with the values of the unreduced problem.

    Where these differ from the first solution's, they are no minimum, and not meant to be one.
    """
    values: dict[str, int] = defaultdict(int)
    for row in problem.rows:
        short = row.weight * row.shortfall(provided_by(problem, row, chosen.replicas))
        values[level_name(*row.level)] += short
    before = {proof.level: proof for proof in first.proofs}
    for proof in chosen.proofs:
        value = values.get(proof.level, proof.value)
        known = before.get(proof.level, proof)
        bound = known.bound if value == known.value else value
        yield replace(proof, value=value, bound=min(bound, value), total=max(known.total, value))
