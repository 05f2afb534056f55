"""Small problems: what the textbook model proves of an answer, and when it has a better one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from planning_builders import LIMITS
from small_problems import best_rank, choosy_problem, is_possible, rank, small_problem
from support.campaign import often
from support.plain_problems import demand, terms

from controller.planning import columns, textbook
from controller.planning.columns.exact import better, is_open, is_small, settled
from controller.planning.problem import (
    COST,
    UNLIMITED_REPLICAS,
    Bin,
    GrowthTerms,
    PlacementProblem,
    Proof,
    Scope,
    Solution,
    SpreadTerms,
)
from hack.bench.placement.catalogue import Instance

FAMILIES = ("F3-skew", "F4-tight", "F5-scarce", "F7-huge-models", "F14-pinned")
LEFT_OVER = (905, 2011)
"""Seeds of worlds in which a rule leaves a replica that the search chose without a place."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_small_fleet_is_proven_over_every_mix(family: str) -> None:
    """Twenty models: nothing could be better at any level, whichever replicas there were."""
    for seed in range(1, 4):
        problem = Instance(family=family, size=20, seed=seed).scenario().problem
        solution = columns.place(problem, limits=LIMITS)
        assert [proof.bound_of_all for proof in solution.proofs] == [p.value for p in solution.proofs], seed
        assert not solution.unproven


@pytest.mark.parametrize("seed", LEFT_OVER)
def test_what_rules_leave_without_a_place_is_no_loss(seed: int) -> None:
    """There is another answer in which everything has one: the best of all."""
    problem = choosy_problem(Random(seed))
    solution = columns.place(problem, limits=LIMITS)
    assert rank(problem, solution.replicas, ()) == best_rank(problem)
    assert not solution.unproven


def test_the_textbook_model_proves_what_it_says() -> None:
    """Each level has the least value that there is, and knows it; levels are named and counted alike."""
    for seed in range(often(60)):
        problem = small_problem(Random(seed))
        proofs = textbook.place(problem, limits=LIMITS).proofs
        assert [proof.bound for proof in proofs] == [proof.value for proof in proofs] == best_rank(problem)
        others = columns.place(problem, limits=LIMITS).proofs
        assert [(p.level, p.total) for p in proofs] == [(p.level, p.total) for p in others], seed


def test_the_next_best_option_is_another_one_whoever_found_the_answer() -> None:
    """It has another number of the variant's replicas, all within their bounds."""
    told = 0
    for seed in (*LEFT_OVER, *range(often(40))):
        problem = choosy_problem(Random(seed))
        solution = columns.place(problem, limits=LIMITS)
        assert len(solution.alternatives) == len(problem.variants)
        for v, mix in enumerate(solution.alternatives):
            if mix:
                told += 1
                assert dict(mix)[v] != solution.replicas[v]
                assert all(problem.variants[w].lower <= n <= problem.variants[w].upper for w, n in mix)
    assert told


def test_without_any_effort_the_answer_stays() -> None:
    """What the textbook model cannot even begin with proves nothing, and takes nothing away."""
    problem = choosy_problem(Random(LEFT_OVER[0]))
    made = columns.place(problem, limits=LIMITS)
    assert settled(problem, made, limits=replace(LIMITS, deterministic_seconds=1e-12)) == made


def _solution(*levels: tuple[int, int, Scope], replicas: int) -> Solution:
    proofs = tuple(
        Proof(level=name, value=value, bound=bound, scope=scope, total=100)
        for name, (value, bound, scope) in zip(("demand", COST), levels, strict=True)
    )
    return Solution(replicas=(replicas,), placements=(), proofs=proofs)


ALL, SOME = Scope.EVERYTHING, Scope.COLUMNS


@pytest.mark.parametrize(
    ("made", "other", "replicas", "bounds", "is_still_open"),
    [
        pytest.param(
            _solution((0, 0, SOME), (9, 9, SOME), replicas=1),
            _solution((0, 0, ALL), (9, 9, ALL), replicas=2),
            1,
            [(0, ALL), (9, ALL)],
            False,
            id="the first answer stays where the other is no better, and is proven by it",
        ),
        pytest.param(
            _solution((0, 0, SOME), (9, 9, SOME), replicas=1),
            _solution((0, 0, ALL), (8, 8, ALL), replicas=2),
            2,
            [(0, ALL), (8, ALL)],
            False,
            id="the other answer is taken where it is better",
        ),
        pytest.param(
            _solution((0, 0, ALL), (9, 5, ALL), replicas=1),
            _solution((0, 0, ALL), (9, 7, ALL), replicas=2),
            1,
            [(0, ALL), (7, ALL)],
            True,
            id="of two bounds over every mix the higher one holds",
        ),
        pytest.param(
            _solution((4, 4, SOME), (9, 9, SOME), replicas=1),
            _solution((3, 2, ALL), (9, 8, ALL), replicas=2),
            2,
            [(3, SOME), (8, SOME)],
            True,
            id="behind a level that differs only the other's bounds say anything",
        ),
    ],
)
def test_two_answers_make_one(
    made: Solution,
    other: Solution,
    replicas: int,
    bounds: list[tuple[int, Scope]],
    *,
    is_still_open: bool,
) -> None:
    """The better of both, with the closest of what both prove."""
    best = better(made, other)
    assert best.replicas == (replicas,)
    assert [(proof.bound, proof.scope) for proof in best.proofs] == bounds
    assert is_open(best) == is_still_open


def test_a_small_problem_of_any_kind_is_the_best_of_all() -> None:
    """With rules of pods or without, over every mix."""
    for seed in range(3000, 3000 + often(30)):
        problem = choosy_problem(Random(seed)) if seed % 2 else small_problem(Random(seed))
        solution = columns.place(problem, limits=LIMITS)
        added = solution.added or (0,) * len(problem.growth)
        assert is_possible(problem, solution.replicas, added), seed
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed


def _few_models(nodes: int, growth: int = 0, *, models: int = 5) -> PlacementProblem:
    """Return models that ask for more than nodes of eight have, with as many nodes that could be added."""
    bins = (Bin(nodes=tuple(range(nodes)), sizes=(2,), variants=tuple(range(models))),)
    grown = GrowthTerms(name="pool", bin=0, accelerators=8, limit=growth, price=5)
    return PlacementProblem(
        variants=tuple(terms(3, size=2, upper=UNLIMITED_REPLICAS, name=f"v{v}") for v in range(models)),
        free=(8,) * nodes,
        bins=bins,
        rows=tuple(demand(v, nodes, (v, 1), priority=0) for v in range(models)),
        growth=(grown,) if growth else (),
    )


def _running(replicas: int, *, pods: int = 1) -> PlacementProblem:
    """Return few models of which one runs, and may keep a single replica."""
    problem = _few_models(10)
    running = replace(problem.variants[0], bound=((0,) * pods,) * replicas, pods=pods, upper=1)
    return replace(problem, variants=(running, *problem.variants[1:]))


def _spread(domains: int) -> PlacementProblem:
    """Return few models of which one has its pods spread evenly."""
    problem = _few_models(10)
    spread = SpreadTerms(topology=0, max_skew=1, domains=tuple(range(domains)))
    variants = (replace(problem.variants[0], spread=spread), *problem.variants[1:])
    return replace(problem, variants=variants, topologies=(tuple(range(10)),))


@pytest.mark.parametrize(
    ("problem", "small"),
    [
        pytest.param(_few_models(10), True, id="few models on few nodes"),
        pytest.param(_few_models(400, growth=400), True, id="few models on hundreds of nodes"),
        pytest.param(_few_models(5000), False, id="few models on many nodes"),
        pytest.param(_few_models(10, growth=100_000), False, id="few nodes and many that could be added"),
        pytest.param(_few_models(10, models=200), False, id="many models on few nodes"),
        pytest.param(_running(300), True, id="hundreds of replicas that run"),
        pytest.param(_running(3000), False, id="thousands of replicas that run"),
        pytest.param(_running(300, pods=16), False, id="hundreds of replicas of many pods that run"),
        pytest.param(_spread(500), True, id="pods spread over hundreds of domains"),
        pytest.param(_spread(5000), False, id="pods spread over thousands of domains"),
        pytest.param(
            replace(_few_models(1), rows=(replace(_few_models(1).rows[0], requirement=10**6),)),
            True,
            id="a demand far beyond what there is room for",
        ),
    ],
)
def test_what_is_small(problem: PlacementProblem, *, small: bool) -> None:
    """What the textbook model has a variable or a step for is counted: variants, nodes, replicas."""
    assert is_small(problem) == small


def test_what_needs_no_room_is_not_small_if_there_may_be_millions_of_it() -> None:
    """The textbook model's first answer is made one replica at a time."""
    problem = _few_models(10)
    anywhere = replace(problem.variants[0], accelerators=0)
    rows = (replace(problem.rows[0], requirement=10**6), *problem.rows[1:])
    assert not is_small(replace(problem, variants=(anywhere, *problem.variants[1:]), rows=rows))


def test_no_search_is_brief_because_a_rough_one_sufficed() -> None:
    """A small problem's prices are of a rough search: nothing may stay as far from them as that did."""
    problem = Instance(family="F5-scarce", size=20, seed=1).scenario().problem
    solution = columns.place(problem, limits=LIMITS)
    assert solution.prices is not None
    assert solution.prices.effort_seconds == 0.0


@pytest.mark.parametrize("price", [0, 7])
def test_no_node_is_asked_for_that_nobody_needs(price: int) -> None:
    """Also where nodes cost nothing, so that any number of them is as good."""
    for seed in range(50_000, 50_000 + often(60)):
        problem = small_problem(Random(seed))
        growth = tuple(replace(terms, price=price, limit=20) for terms in problem.growth)
        solution = columns.place(replace(problem, growth=growth), limits=LIMITS)
        for index, count in enumerate(solution.added):
            assert count <= sum(pods for _, g, pods in solution.grown if g == index), seed
