"""What is proven over every replica mix, where columns are only some of them, against brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from planning_builders import LIMITS
from small_problems import best_rank, choosy_problem, small_problem
from support.plain_problems import terms

from controller.planning import columns
from controller.planning.columns import cohorts as cohort_module
from controller.planning.columns.certificate.certify import Quoted, certify
from controller.planning.columns.certificate.covers import least_of_all, most_useful
from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.market import Market
from controller.planning.columns.mixes import first_mixes
from controller.planning.columns.phase import phase
from controller.planning.columns.pool import pool_of
from controller.planning.columns.resources import resources_of
from controller.planning.problem import Bin, CoverRow, PlacementProblem, Scope, Solution, Stage
from controller.planning.proofs import with_values

pytestmark = pytest.mark.usefixtures("search_alone")

MAKERS = {"small": small_problem, "choosy": choosy_problem}


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let mixes be generated for every model, as for those that have too many to look at."""
    monkeypatch.setattr(cohort_module, "ENUMERABLE_MIXES", 0)


@pytest.mark.usefixtures("generated")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_nothing_possible_is_below_what_is_proven(make: Callable[[Random], PlacementProblem]) -> None:
    """No level can be better than its bound given the earlier ones, and mostly it can be as good."""
    bounds, met = 0, 0
    for seed in range(100):
        problem = make(Random(seed))
        best = best_rank(problem)
        proofs = columns.place(problem, limits=LIMITS, certifies=True).proofs
        for level, proof in enumerate(proofs):
            if [earlier.value for earlier in proofs[:level]] != best[:level]:
                break
            assert proof.bound_of_all is not None, seed
            assert proof.bound_of_all <= best[level], (seed, proof)
            assert proof.scope is not Scope.EVERYTHING or proof.bound <= best[level], (seed, proof)
            bounds += 1
            met += proof.bound_of_all == best[level]
    assert met > 0.8 * bounds > 200


def test_the_cheapest_of_all_mixes_is_found_at_any_prices() -> None:
    """A model costs what the cheapest of all its mixes does, or less where rows are left out."""
    compared, equal = 0, 0
    for seed in range(150):
        for level, ours, everything in _at_random_prices(Random(seed)):
            assert ours <= everything + 1e-6 * (1 + abs(everything)), (seed, level)
            compared += 1
            equal += ours >= everything - 1e-6 * (1 + abs(everything))
    assert equal > 0.95 * compared > 100


def _at_random_prices(random: Random) -> list[tuple[int, float, float]]:
    """Return each level with its bound by a few columns and branching, and by columns for all mixes."""
    problem = small_problem(random)
    resources, levels = resources_of(problem), levels_of(problem)
    cohorts = [
        replace(cohort, upper=most_useful(cohort)) for cohort in cohorts_of(problem, resources, levels)
    ]
    full = [pool_of(cohort, first_mixes(cohort)) for cohort in cohorts]
    least = least_of_all(full, levels)
    found = []
    for level in range(len(levels) + 1):
        values = [value + random.choice((0, 0, 300)) for value in least]
        excess = [value - best for value, best in zip(values, least, strict=True)]
        asked = phase(full, resources, levels, level=level, values=values, excess=excess)
        rows = np.array([random.choice((0.0, 1.0, 20.0)) * random.random() for _ in asked.capacity])
        answer = Market(full, resources, asked).answer(rows)
        if not np.isfinite(answer.bound):
            continue
        disturbed = [pool.disturbed * (level == len(levels)) for pool in full]
        all_mixes = [(r - d).min(axis=1) for r, d in zip(answer.reduced, disturbed, strict=True)]
        shared = len(resources.capacity)
        few = [
            pool_of(replace(pool.cohort, is_enumerable=False), pool.cohort.lower[:, None]) for pool in full
        ]
        quoted = Quoted(
            level=level,
            caps=dict(zip(asked.capped, rows[shared:].tolist(), strict=True)),
            unit=asked.unit if level == len(levels) else 0,
            rows=rows[:shared],
            known=tuple(2 * np.abs(known) + 1 for known in all_mixes),
            constant=0.0,
        )
        ours = certify(few, resources, quoted, tolerance=0.0).bound
        found.append((level, ours, float(sum(known.sum() for known in all_mixes))))
    return found


def _two_variants(free: int) -> PlacementProblem:
    """Return a model whose best mix has nine replicas of one variant and four of the other."""
    variants = [(45, 44), (49, 50)]
    return PlacementProblem(
        variants=tuple(terms(cost, upper=14, name=f"v{amount}") for amount, cost in variants),
        free=(free,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0, 1)),),
        rows=(
            CoverRow(
                name="model",
                stage=Stage.DEMAND,
                priority=0,
                model=0,
                requirement=600,
                terms=((0, 45), (1, 49)),
            ),
        ),
    )


@pytest.mark.parametrize("free", [64, 13], ids=["where there is room for everybody", "where room is short"])
def test_a_mix_that_generation_missed_is_found(free: int) -> None:
    """The best mix is far from any cover by one variant: only the certificate tells that it is there."""
    without = columns.place(_two_variants(free), limits=LIMITS)
    certified = columns.place(_two_variants(free), limits=LIMITS, certifies=True)
    assert {proof.scope for proof in without.proofs} == {Scope.COLUMNS}
    assert without.replicas != (9, 4)
    assert certified.replicas == (9, 4)
    assert certified.proofs[-1].bound_of_all == 596


@pytest.mark.usefixtures("generated")
def test_the_same_problem_is_proven_alike_twice() -> None:
    """Effort is counted, never timed."""
    for seed in range(15):
        problem = small_problem(Random(seed))
        answers: list[Solution] = [columns.place(problem, limits=LIMITS, certifies=True) for _ in range(2)]
        assert answers[0] == answers[1], seed


def test_a_proof_of_all_mixes_says_no_more_of_another_answer() -> None:
    """Behind a level with another value, what was proven of later ones may be wrong for the other answer."""
    demand, cost = columns.place(_two_variants(64), limits=LIMITS, certifies=True).proofs
    partial = [replace(proof, scope=Scope.COLUMNS, certified=proof.bound) for proof in (demand, cost)]
    assert [proof.bound_of_all for proof in with_values(partial, [demand.value, 700])] == [0, 596]
    assert [proof.bound_of_all for proof in with_values(partial, [demand.value + 5, 500])] == [0, 0]
