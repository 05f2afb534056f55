"""The placement engine, checked against brute force on small problems of all kinds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from support import plain_problems
from support.campaign import often
from support.planning_builders import EFFORT
from support.small_problems import added_nodes, best_rank, is_possible, rank, small_problem

from controller.planning import engine
from controller.planning.problem import Bin, PlacementProblem, Solution

SEEDS = range(often(300))


@pytest.mark.parametrize("block", range(5))
def test_solutions_are_optimal(block: int) -> None:
    """Every replica has a node, no limit is exceeded, and no feasible solution is better."""
    for seed in SEEDS[block::5]:
        problem = small_problem(Random(seed))
        solution = engine.place(problem, effort=EFFORT)
        added = added_nodes(problem, solution)
        assert is_possible(problem, solution.replicas, added), seed
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed


def test_reported_values_and_bounds_equal_the_optimum() -> None:
    """All levels are proven to be optimal."""
    for seed in SEEDS[: often(40)]:
        problem = small_problem(Random(seed))
        solution = engine.place(problem, effort=EFFORT)
        best = best_rank(problem)
        assert [proof.value for proof in solution.proofs] == best, seed
        assert [proof.bound for proof in solution.proofs] == best, seed


def test_problems_without_costs_are_solved_to_optimality() -> None:
    """If all costs are zero, shortfalls still count."""
    for seed in SEEDS[: often(60)]:
        problem = small_problem(Random(seed))
        free = replace(
            problem,
            variants=tuple(replace(v, cost=0, start_price=0, stop_price=0) for v in problem.variants),
            growth=(),
        )
        solution = engine.place(free, effort=EFFORT)
        assert rank(free, solution.replicas, ()) == best_rank(free), seed


def test_placements_are_on_eligible_nodes_with_room() -> None:
    """The pods on existing and on added nodes are exactly the new ones."""
    for seed in SEEDS[: often(50)]:
        problem = small_problem(Random(seed))
        solution = engine.place(problem, effort=EFFORT)
        _check_places(problem, solution)


def _check_places(problem: PlacementProblem, solution: Solution) -> None:
    free = list(problem.free)
    for terms, count in zip(problem.variants, solution.replicas, strict=True):
        for nodes in terms.bound_replicas[: max(0, len(terms.bound_replicas) - count)]:
            for node in nodes:
                free[node] += terms.accelerators
    given = dict.fromkeys(range(len(problem.variants)), 0)
    room = {
        g: growth.accelerators * solution.added[g]
        for g, growth in enumerate(problem.growth)
        if solution.added
    }
    for v, node, count in solution.placements:
        bin_ = next(b for b in problem.bins if node in b.nodes)
        assert v in bin_.variants
        free[node] -= count * problem.variants[v].accelerators
        assert free[node] >= 0
        given[v] += count
    for v, g, count in solution.grown:
        assert v in problem.bins[problem.growth[g].bin].variants
        room[g] -= count * problem.variants[v].accelerators
        assert room[g] >= 0
        given[v] += count
    for v, terms in enumerate(problem.variants):
        new = max(0, solution.replicas[v] - len(terms.bound_replicas))
        assert given[v] == (new if terms.accelerators else 0)


def test_the_same_problem_gives_the_same_solution() -> None:
    """Repeated solutions are equal in all fields."""
    for seed in SEEDS[: often(15)]:
        problem = small_problem(Random(seed))
        assert engine.place(problem, effort=EFFORT) == engine.place(problem, effort=EFFORT)


def test_a_solution_without_effort_is_feasible() -> None:
    """Its bounds state how far it may be from the optimum."""
    for seed in SEEDS[: often(40)]:
        problem = small_problem(Random(seed))
        hurried = engine.place(problem, effort=replace(EFFORT, deterministic_seconds=1e-9))
        assert is_possible(problem, hurried.replicas, added_nodes(problem, hurried)), seed
        assert all(proof.bound <= proof.value for proof in hurried.proofs)


def test_the_demand_of_a_model_without_variants_stays_unmet() -> None:
    """The row has no terms, so that all of its requirement is missing."""
    problem = PlacementProblem(
        variants=(plain_problems.terms(1, upper=1),),
        free=(2,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0,)),),
        rows=(plain_problems.demand(0, 5),),
    )
    solution = engine.place(problem, effort=EFFORT)

    assert solution.replicas == (0,)
    assert [proof.value for proof in solution.proofs] == [1000, 0]


def test_an_empty_problem_has_an_empty_solution() -> None:
    """Callers need no special case for it."""
    nothing = PlacementProblem(
        variants=(), free=(4,), bins=(Bin(nodes=(0,), sizes=(), variants=()),), rows=()
    )
    assert engine.place(nothing, effort=EFFORT) == Solution(replicas=(), placements=())
