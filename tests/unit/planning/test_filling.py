"""Leftover room where demand is short: none is left that one more replica could use."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.campaign import often
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT
from support.small_problems import constrained_problem, small_problem

from controller.planning.engine import place
from controller.planning.engine.assign import Vacancies
from controller.planning.engine.shared import limit_of
from controller.planning.problem import (
    Bin,
    CountedReplicas,
    PlacementProblem,
    Stage,
    free_after_removals,
    per_mille_missing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controller.planning.problem import Solution

    Make = Callable[[Random], PlacementProblem]

MAKERS: dict[str, Make] = {"small": small_problem, "constrained": constrained_problem}
SEEDS = (*range(often(80)), 494, 808)  # in the last two the search stops a replica that may stay


def _unused(problem: PlacementProblem, solution: Solution) -> Iterator[tuple[str, int]]:
    """Yield (row, variant) if one more replica has room, keeps all limits and reduces the row's shortfall."""
    vacancies = Vacancies(problem, solution)
    for row in problem.rows:
        if row.counted is not CountedReplicas.ALL:
            continue
        provided = sum(amount * solution.replicas[v] for v, amount in row.terms)
        short = per_mille_missing(row.requirement, provided)
        for v, amount in row.terms:
            own = problem.variants[v]
            helps = per_mille_missing(row.requirement, provided + amount) < short
            is_allowed = own.accelerators and solution.replicas[v] < own.upper
            if not (helps and is_allowed and _keeps_limits(problem, solution, v)):
                continue
            leaving = (
                len(own.bound_replicas) - solution.replicas[v]
            )  # none starts while others of the variant leave
            if _may_stay(problem, solution, v) if leaving > 0 else vacancies.has_room_for_one(v):
                yield row.name, v


def _may_stay(problem: PlacementProblem, solution: Solution, v: int) -> bool:
    """Return whether the accelerators of the last of a variant's leaving replicas are still free."""
    free = free_after_removals(problem, solution.replicas)
    for other, node, pods in solution.placements:
        free[node] -= pods * problem.variants[other].accelerators
    own = problem.variants[v]
    leaving = Counter(own.bound_replicas[len(own.bound_replicas) - solution.replicas[v] - 1])
    return all(free[node] >= count * own.accelerators for node, count in leaving.items())


def _keeps_limits(problem: PlacementProblem, solution: Solution, more: int) -> bool:
    replicas = list(solution.replicas)
    replicas[more] += 1
    return all(
        sum(amount * replicas[v] for v, amount in limit.terms) <= limit_of(limit, problem)
        for limit in problem.limits
    )


@pytest.mark.parametrize("seconds", [0.0, EFFORT.deterministic_seconds], ids=["no effort", "enough effort"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_no_room_is_left_that_a_short_model_could_use(make: Make, seconds: float) -> None:
    """This holds however early the search ends."""
    effort = replace(EFFORT, deterministic_seconds=seconds)
    for seed in SEEDS:
        problem = make(Random(seed))
        assert not list(_unused(problem, place(problem, effort=effort))), seed


def test_no_replica_is_added_for_capacity_that_only_ready_replicas_provide() -> None:
    """A new replica would not be ready while replacements start."""
    shared = terms(10, upper=4)
    ready = replace(demand(0, 4, (0, 1)), stage=Stage.CONTINUITY, counted=CountedReplicas.READY)
    problem = PlacementProblem(
        variants=(shared,),
        free=(4,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0,)),),
        rows=(demand(0, 2, (0, 1)), ready),
    )
    assert place(problem, effort=replace(EFFORT, deterministic_seconds=0.0)).replicas == (2,)
