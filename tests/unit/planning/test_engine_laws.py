"""Properties of the placement engine, checked against brute force on small problems of all kinds."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.campaign import often
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT
from support.small_problems import (
    added_nodes,
    best_rank,
    check_claims,
    constrained_problem,
    rank,
    small_problem,
)

from controller.planning.engine import Engine, alone, place
from controller.planning.engine.levels import with_values
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.problem import (
    COST,
    NO_DOMAIN,
    Bin,
    GrowthTerms,
    LimitKind,
    LimitRow,
    NumbersTooLargeError,
    PlacementProblem,
    Proof,
    Solution,
)
from hack.fleets.worlds import world

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Random], PlacementProblem]

MAKERS: dict[str, Make] = {"small": small_problem, "constrained": constrained_problem}
LEFT_OVER = (905, 2011)
"""Seeds of problems in which a rule leaves no place for a replica although a node has room."""


def _by_cores(problem: PlacementProblem) -> Solution:
    """Return the solution by cores of generated patterns, as for many models."""
    return Engine(problem, has_counts=False, closes_gaps=False).place(EFFORT)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_small_problems_are_solved_to_optimality(make: Make) -> None:
    """This holds with and without topology rules."""
    for seed in range(3000, 3000 + often(60)):
        problem = make(Random(seed))
        solution = place(problem, effort=EFFORT)
        check_claims(problem, solution, seed)
        assert [proof.value for proof in solution.proofs] == best_rank(problem), seed


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_cores_are_mostly_optimal(make: Make) -> None:
    """As in large fleets, cores are solved: solutions are feasible, bounds hold, over 90 % are optimal."""
    best = 0
    for seed in range(4000, 4000 + often(60)):
        problem = make(Random(seed))
        solution = _by_cores(problem)
        check_claims(problem, solution, seed)
        best += [proof.value for proof in solution.proofs] == best_rank(problem)
    assert best > often(60) * 0.9


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_no_bound_by_generated_patterns_exceeds_the_optimum(make: Make) -> None:
    """Bounds hold given the values of earlier levels, and over 80 % of them are reached."""
    bounds = met = 0
    for seed in range(often(100)):
        problem = make(Random(seed))
        solution = _by_cores(problem)
        check_claims(problem, solution, seed)
        bounds += len(solution.proofs)
        met += sum(proof.bound == proof.value for proof in solution.proofs)
    assert met > 0.8 * bounds > 200


def test_nothing_is_searched_if_there_is_room_for_all_models() -> None:
    """Each model gets the mix that is best for it alone, however few of its mixes were generated."""
    for seed in range(often(100)):
        problem = small_problem(Random(seed))
        roomy = replace(problem, free=tuple(1000 for _ in problem.free), limits=(), growth=())
        solution = _by_cores(roomy)
        assert not solution.prices, seed
        assert rank(roomy, solution.replicas, ()) == best_rank(roomy), seed


@pytest.mark.parametrize("seed", LEFT_OVER)
def test_a_choice_that_rules_leave_without_a_place_is_replaced_by_an_optimal_one(seed: int) -> None:
    """In another optimal solution all replicas have a place."""
    problem = constrained_problem(Random(seed))
    solution = place(problem, effort=EFFORT)
    assert rank(problem, solution.replicas, added_nodes(problem, solution)) == best_rank(problem)
    assert not solution.unproven


def _two_variants(free: int) -> PlacementProblem:
    """Return a model whose best mix has nine replicas of one variant and four of the other."""
    return PlacementProblem(
        variants=(terms(44, upper=14, name="v45"), terms(50, upper=14, name="v49")),
        free=(free,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0, 1)),),
        rows=(demand(0, 600, (0, 45), (1, 49), priority=0),),
    )


@pytest.mark.parametrize("free", [64, 13], ids=["with room for all", "with scarce room"])
def test_a_mix_far_from_every_cover_by_one_variant_is_found(free: int) -> None:
    """It is cheaper because each of the others provides slightly more than required."""
    solution = place(_two_variants(free), effort=EFFORT)
    assert solution.replicas == (9, 4)
    assert solution.proofs[-1].bound == 596


def test_a_model_alone_gets_its_cheapest_mix() -> None:
    """The available room does not matter."""
    assert alone(_two_variants(64)) == alone(_two_variants(1)) == (9, 4)


def test_a_requirement_that_no_variant_serves_does_not_affect_other_models() -> None:
    """Its row has no terms, because no replica of its model serves anything."""
    problem = PlacementProblem(
        variants=(terms(1, upper=5), terms(1, upper=5)),
        free=(2,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0, 1)),),
        rows=(demand(0, 2, (0, 1)), demand(1, 3)),
    )
    solution = place(problem, effort=EFFORT)
    assert solution.replicas == (2, 0)
    assert [(proof.value, proof.bound) for proof in solution.proofs] == [(1000, 1000), (2, 2)]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_solution_without_effort_is_feasible(make: Make) -> None:
    """Its values are correct, and its bounds hold."""
    for seed in range(often(60)):
        problem = make(Random(seed))
        check_claims(problem, place(problem, effort=replace(EFFORT, deterministic_seconds=1e-9)), seed)


def test_without_effort_room_is_given_to_models_by_priority() -> None:
    """Nothing runs yet: the linear solution is rounded, and what does not fit has the lowest priority."""
    problem = PlacementProblem(
        variants=(terms(10), terms(10), terms(10)),
        free=(3, 3),
        bins=(Bin(nodes=(0, 1), sizes=(1,), variants=(0, 1, 2)),),
        rows=(
            demand(0, 4, (0, 1), priority=2),
            demand(1, 4, (1, 1), priority=1),
            demand(2, 4, (2, 1), priority=3),
        ),
        limits=(LimitRow(name="quota", limit=5, terms=((0, 1), (1, 1), (2, 1))),),
    )
    solution = place(problem, effort=replace(EFFORT, deterministic_seconds=0.0))
    assert solution.replicas == (1, 4, 0)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_problem_gives_the_same_solution(make: Make) -> None:
    """Effort is counted, not measured as time."""
    for seed in range(15):
        problem = make(Random(seed))
        assert _by_cores(problem) == _by_cores(problem), seed


@pytest.mark.parametrize("price", [0, 7])
def test_no_node_is_added_that_no_pod_uses(price: int) -> None:
    """This holds even if nodes cost nothing, so that adding any number of them is equally good."""
    for seed in range(50_000, 50_000 + often(60)):
        problem = small_problem(Random(seed))
        growth = tuple(replace(terms, price=price, limit=20) for terms in problem.growth)
        solution = place(replace(problem, growth=growth), effort=EFFORT)
        for index, count in enumerate(solution.added):
            assert count <= sum(pods for _, g, pods in solution.grown if g == index), seed


@pytest.mark.parametrize(
    ("models", "seed", "effort"), [(20, 0, 1.0), (40, 1, 0.2), (70, 5, 0.2), (130, 5, 0.2), (60, 3, 1e-3)]
)
def test_more_effort_never_worsens_the_objective(models: int, seed: int, effort: float) -> None:
    """In lexicographic order more effort reaches the same or better, and no bound exceeds a value."""
    given = world("plan-scarce", models, seed=seed)
    settings = replace(Settings(), wall_seconds=600, relief_solves=0, deterministic_seconds=effort)
    made, none = (
        plan(given, each).solver.levels for each in (settings, replace(settings, deterministic_seconds=1e-9))
    )
    assert [level.value for level in made] <= [level.value for level in none]
    assert all(level.bound <= level.value for level in (*made, *none))


def test_bounds_are_reused_for_another_solution_only_as_far_as_they_hold() -> None:
    """After a level with a worse value, bounds of later levels may be wrong for the other solution.

    A better value leaves later levels no more choice, so that their bounds hold.
    """
    short, cost = proofs = (
        Proof(level="demand", value=5, bound=5, total=100),
        Proof(level=COST, value=600, bound=596, total=600),
    )
    assert Solution(replicas=(), placements=(), proofs=proofs).unproven is cost
    assert [proof.bound for proof in with_values(proofs, [short.value, 700])] == [5, 596]
    assert [proof.bound for proof in with_values(proofs, [short.value + 5, 500])] == [5, 0]
    assert [proof.bound for proof in with_values(proofs, [short.value - 2, 700])] == [3, 596]
    assert with_values(proofs, [short.value, 700])[-1].total == 700


@pytest.mark.parametrize("quota", [27, 29, 31, 35, 39])
def test_mixes_near_the_linear_solution_that_a_ceiling_forbids_are_left_out(quota: int) -> None:
    """The quota splits a model whose own ceiling forbids rounding up its mean number of replicas."""
    cheap, dear = terms(10, upper=10), terms(13, upper=10)
    problem = PlacementProblem(
        variants=(cheap, dear, cheap, dear),
        free=(64,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0, 1, 2, 3)),),
        rows=(
            demand(0, 10, (0, 1), (1, 1), priority=0),
            demand(1, 10, (2, 1), (3, 1), priority=0),
        ),
        limits=(
            LimitRow(name="ceiling", limit=10, terms=((2, 1), (3, 1)), kind=LimitKind.CEILING),
            LimitRow(name="quota", limit=quota, terms=((0, 2), (2, 2))),
        ),
    )
    solution = place(problem, effort=EFFORT)
    assert solution.proofs[0].value == 0
    assert not solution.unproven


def test_a_model_with_more_variants_than_array_dimensions_is_solved() -> None:
    """It has 71 variants, of which all but one have no choice."""
    many = (terms(10, upper=2), *(terms(10, upper=0) for _ in range(70)))
    problem = PlacementProblem(
        variants=many,
        free=(8,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=tuple(range(len(many)))),),
        rows=(demand(0, 2, *((v, 1) for v in range(len(many))), priority=0),),
    )
    assert place(problem, effort=EFFORT).replicas[0] == 2


def test_a_price_of_nodes_too_large_to_compare_is_rejected() -> None:
    """As for the cost of replicas, the error states what to lower."""
    problem = PlacementProblem(
        variants=(terms(1, upper=2),),
        free=(),
        bins=(Bin(nodes=(), sizes=(1,), variants=(0,)),),
        rows=(demand(0, 2, (0, 1), priority=0),),
        growth=(GrowthTerms(name="pool", bin=0, accelerators=8, price=10**15, limit=1000),),
    )
    with pytest.raises(NumbersTooLargeError, match="pool: the price of up to 1000 nodes"):
        place(problem, effort=EFFORT)


@pytest.mark.parametrize(
    "can_be_added", [False, True], ids=["an existing node without a domain", "a node to be added"]
)
def test_a_pod_larger_than_those_of_a_gang_needs_no_domain(*, can_be_added: bool) -> None:
    """It may use a node outside all domains, and the bound equals the value."""
    gang = replace(terms(10, upper=2), accelerators=4, pods=2, together=0)
    single = replace(terms(10, upper=2), accelerators=16)
    nodes = () if can_be_added else (0,)
    pool = GrowthTerms(name="pool", bin=0, accelerators=16, price=1, limit=2, domains=(NO_DOMAIN,))
    problem = PlacementProblem(
        variants=(gang, single),
        free=(16,) * len(nodes),
        bins=(Bin(nodes=nodes, sizes=(4, 16), variants=(0, 1)),),
        rows=(demand(0, 1, (0, 1), priority=0), demand(1, 1, (1, 1), priority=0)),
        topologies=((NO_DOMAIN,) * len(nodes),),
        growth=(pool,) if can_be_added else (),
    )
    solution = place(problem, effort=EFFORT)
    assert solution.replicas == (0, 1)
    assert solution.proofs[0].bound == solution.proofs[0].value


@pytest.mark.parametrize("limit", [4, 700], ids=["each node has variables", "nodes are counted by slots"])
def test_a_gang_uses_nodes_that_are_added_to_its_domain(limit: int) -> None:
    """The existing node has room for one pod only; two replicas of two pods need three more nodes."""
    gang = replace(terms(10, upper=2), accelerators=8, pods=2, together=0)
    pool = GrowthTerms(name="pool", bin=0, accelerators=8, price=1, limit=limit, domains=(0,))
    problem = PlacementProblem(
        variants=(gang,),
        free=(8,),
        bins=(Bin(nodes=(0,), sizes=(8,), variants=(0,)),),
        rows=(demand(0, 2, (0, 1), priority=0),),
        topologies=((0,),),
        growth=(pool,),
    )
    solution = place(problem, effort=EFFORT)
    assert (solution.replicas, solution.added) == ((2,), (3,))
    assert (solution.placements, solution.grown) == (((0, 0, 1),), ((0, 0, 3),))
    other_domain = replace(problem, growth=(replace(pool, domains=(1,)),))
    assert place(other_domain, effort=EFFORT).added == (4,)
    no_domain = replace(problem, growth=(replace(pool, domains=()),))
    assert place(no_domain, effort=EFFORT).replicas == (0,)


def test_a_model_of_many_variants_that_the_linear_solution_splits_is_solved() -> None:
    """The number of ways to round depends on what the linear solution splits, not on all variants."""
    variants = tuple(terms(10 + v, upper=9) for v in range(24))
    problem = PlacementProblem(
        variants=variants * 2,
        free=(1000,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=tuple(range(48))),),
        rows=tuple(
            demand(model, 1000, *((24 * model + v, 7 + v) for v in range(24)), priority=0)
            for model in range(2)
        ),
        limits=(LimitRow(name="quota", limit=101, terms=tuple((v, 2 + v % 5) for v in range(48))),),
    )
    solution = place(problem, effort=EFFORT)
    assert sum(solution.replicas[v] * (2 + v % 5) for v in range(48)) <= 101
    assert solution.proofs[0].bound <= solution.proofs[0].value < solution.proofs[0].total


def test_room_freed_on_a_node_is_counted_once_for_all_mixes_that_free_it() -> None:
    """Otherwise a node with room for many pods seems too large to examine each packing."""
    held = replace(terms(10, size=5, upper=12, current=12), bound_replicas=((0,),) * 12)
    problem = PlacementProblem(
        variants=(held, terms(9, size=4, upper=60), terms(8, size=3, upper=60)),
        free=(10,),
        bins=(Bin(nodes=(0,), sizes=(3, 4, 5), variants=(0, 1, 2)),),
        rows=(demand(0, 30, (0, 4), (1, 3), priority=1), demand(1, 17, (2, 1), priority=0)),
    )
    solution = place(problem, effort=EFFORT)
    assert not solution.unproven


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_small_cluster_with_scarce_accelerators_gets_a_plan(seed: int) -> None:
    """This includes problems where improving a level would worsen one that is already settled."""
    unhurried = replace(Settings(), wall_seconds=600, relief_solves=0)
    made = plan(world("plan-scarce", 20, seed=seed), unhurried)
    assert not made.solver.message
