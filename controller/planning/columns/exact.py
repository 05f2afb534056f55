"""Small problems are settled by the textbook model: its answer holds for every replica mix and every rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning import textbook
from controller.planning.lexicographic import NoSolutionError
from controller.planning.problem import Scope
from controller.planning.proofs import proven, with_values

if TYPE_CHECKING:
    from controller.planning.lexicographic import Limits
    from controller.planning.problem import PlacementProblem, Proof, Solution


MOST_PLACES = 160
"""Up to how many variants there may be, each counted in every bin that it may go to."""

MOST_NODES = 1000
"""Those that could be added included: each of these is a variable."""

MOST_REPLICAS = 4000
"""Of all variants together, as many of each as would do alone: the first answer is made one by one."""

MOST_STAYING = 1000
"""Pods that run and might stay: each replica of these is a variable. Beyond that little is proven in time."""

MOST_DOMAINS = 2000
"""Those over which the pods of variants are spread, counted for each."""

EFFORT_SECONDS = 0.3
"""Of the solver's deterministic time: what can be proven of a small problem mostly is by then."""


def is_small(problem: PlacementProblem) -> bool:
    """Tell whether the textbook model mostly proves its answer in a fraction of a second."""
    if len(problem.variants) > MOST_PLACES or _nodes(problem) > MOST_NODES:
        return False
    staying = sum(len(terms.bound) * terms.pods for terms in problem.variants)
    domains = sum(len(terms.spread.domains) for terms in problem.variants if terms.spread)
    if staying > MOST_STAYING or domains > MOST_DOMAINS or _replicas(problem) > MOST_REPLICAS:
        return False
    return sum(len(bin_.variants) for bin_ in textbook.expanded(problem).bins) <= MOST_PLACES


def _nodes(problem: PlacementProblem) -> int:
    return len(problem.free) + sum(growth.limit for growth in problem.growth)


def _replicas(problem: PlacementProblem) -> int:
    """Return how many replicas there would be if each variant met all requirements alone, within reach."""
    wanted = [terms.lower for terms in problem.variants]
    for row in problem.rows:
        for v, amount in row.terms:
            wanted[v] = max(wanted[v], -(-row.requirement // amount) if amount else 0)
    most = sum(max(0, free) for free in problem.free)
    most += sum(growth.accelerators * growth.limit for growth in problem.growth)
    rooms = [
        most // terms.accelerators + len(terms.bound) if terms.accelerators else terms.upper
        for terms in problem.variants
    ]
    return sum(
        min(terms.upper, count, room)
        for terms, count, room in zip(problem.variants, wanted, rooms, strict=True)
    )


def is_open(made: Solution) -> bool:
    """Tell whether some level might be better, over every mix."""
    return any(proof.bound_of_all != proof.value for proof in made.proofs)


def settled(problem: PlacementProblem, made: Solution, *, limits: Limits) -> Solution:
    """Return an answer with what the textbook model proves of it, or a better one if that finds any."""
    effort = min(limits.deterministic_seconds, EFFORT_SECONDS)
    try:
        other = textbook.place(problem, limits=replace(limits, deterministic_seconds=effort))
    except NoSolutionError:  # there is an answer, and nothing is proven of it
        return made
    return better(made, other)


def better(made: Solution, other: Solution) -> Solution:
    """Return the better of two answers, with what both prove of it, and the prices of the first."""
    best = min(made, other, key=_values)
    both = (with_values(solution.proofs, _values(best)) for solution in (made, other))
    proofs = tuple(_closer(*pair) for pair in zip(*both, strict=True))
    return proven(replace(best, prices=made.prices), proofs)


def _values(solution: Solution) -> list[int]:
    return [proof.value for proof in solution.proofs]


def _closer(proof: Proof, other: Proof) -> Proof:
    """Return the proof of a value, with the better of both bounds over every mix."""
    known = [bound for bound in (proof.bound_of_all, other.bound_of_all) if bound is not None]
    if not known:
        return proof
    bound = max(known)
    if bound == proof.value or proof.scope is Scope.EVERYTHING:
        return replace(proof, bound=bound, scope=Scope.EVERYTHING, certified=None)
    return replace(proof, bound=max(proof.bound, bound), certified=bound)
