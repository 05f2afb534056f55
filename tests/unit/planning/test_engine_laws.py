"""Laws of the placement engine, against brute force on small problems with everything in them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from planning_builders import EFFORT
from small_problems import added_nodes, best_rank, check_claims, constrained_problem, rank, small_problem
from support.campaign import often
from support.plain_problems import demand, terms

from controller.planning.engine import Engine, alone, place
from controller.planning.engine.patterns import MOST_OF_MODEL
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
from controller.planning.proofs import with_values
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
from hack.fleets.worlds import world

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Random], PlacementProblem]

MAKERS: dict[str, Make] = {"small": small_problem, "constrained": constrained_problem}
LEFT_OVER = (905, 2011)
"""Seeds of problems in which a rule leaves no place for a replica that room alone would allow."""


def _generated(problem: PlacementProblem) -> Solution:
    """Place as with many models that have too many mixes to enumerate: by cores of generated patterns."""
    return Engine(problem, most_of_model=0, most_counted=0).place(EFFORT)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_small_problem_of_any_kind_is_the_best_of_all(make: Make) -> None:
    """With rules of pods or without, over every mix."""
    for seed in range(3000, 3000 + often(60)):
        problem = make(Random(seed))
        solution = place(problem, effort=EFFORT)
        check_claims(problem, solution, seed)
        assert [proof.value for proof in solution.proofs] == best_rank(problem), seed


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_cores_of_enumerated_patterns_come_close_to_the_best(make: Make) -> None:
    """As with many models: what is found is possible, bounds hold, and mostly it is the best of all."""
    best = 0
    for seed in range(4000, 4000 + often(60)):
        problem = make(Random(seed))
        solution = Engine(problem, most_counted=0).place(EFFORT)
        check_claims(problem, solution, seed)
        best += [proof.value for proof in solution.proofs] == best_rank(problem)
    assert best > often(60) * 0.9


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_no_bound_is_above_the_best_where_mixes_are_generated(make: Make) -> None:
    """No level can be better than its bound given the earlier ones, and mostly it can be as good."""
    bounds = met = 0
    for seed in range(often(100)):
        problem = make(Random(seed))
        solution = _generated(problem)
        check_claims(problem, solution, seed)
        bounds += len(solution.proofs)
        met += sum(proof.bound == proof.value for proof in solution.proofs)
    assert met > 0.8 * bounds > 200


def test_where_there_is_room_for_all_nothing_is_searched() -> None:
    """Whatever runs, and however few mixes were looked at, each model has what is best for it alone."""
    for seed in range(often(100)):
        problem = small_problem(Random(seed))
        roomy = replace(problem, free=tuple(1000 for _ in problem.free), limits=(), growth=())
        solution = _generated(roomy)
        assert solution.prices is None, seed
        assert rank(roomy, solution.replicas, ()) == best_rank(roomy), seed


@pytest.mark.parametrize("seed", LEFT_OVER)
def test_what_rules_leave_without_a_place_is_no_loss(seed: int) -> None:
    """There is another answer in which everything has one: the best of all."""
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


@pytest.mark.parametrize("most", [MOST_OF_MODEL, 0], ids=["enumerated", "generated"])
@pytest.mark.parametrize("free", [64, 13], ids=["where there is room for everybody", "where room is short"])
def test_a_mix_that_is_far_from_any_cover_by_one_variant_is_found(free: int, most: int) -> None:
    """It is cheaper by the little that each of the others provides too much."""
    solution = Engine(_two_variants(free), most_of_model=most).place(EFFORT)
    assert solution.replicas == (9, 4)
    assert solution.proofs[-1].bound == 596


def test_alone_each_model_has_what_would_be_cheapest_for_it() -> None:
    """Whether there is room for it or not."""
    assert alone(_two_variants(64)) == alone(_two_variants(1)) == (9, 4)


def test_what_nothing_serves_is_short_and_no_other_suffers() -> None:
    """A row without a variant: its model has none whose replicas serve anything."""
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
def test_with_no_effort_at_all_there_is_a_possible_plan(make: Make) -> None:
    """It is worth what it says, with bounds that hold."""
    for seed in range(often(60)):
        problem = make(Random(seed))
        check_claims(problem, place(problem, effort=replace(EFFORT, deterministic_seconds=1e-9)), seed)


def test_without_effort_what_has_room_is_served_by_priority() -> None:
    """Also where nothing runs yet: the linear solution is rounded, and what does not fit matters least."""
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
def test_the_same_problem_gives_the_same_answer(make: Make) -> None:
    """Effort is counted, never timed."""
    for seed in range(15):
        problem = make(Random(seed))
        assert _generated(problem) == _generated(problem), seed


def test_the_next_best_option_is_another_one() -> None:
    """It has another number of the variant's replicas, all within their bounds."""
    told = 0
    for seed in (*LEFT_OVER, *range(often(40))):
        problem = constrained_problem(Random(seed))
        solution = place(problem, effort=EFFORT)
        assert len(solution.alternatives) == len(problem.variants)
        for v, mix in enumerate(solution.alternatives):
            if mix:
                told += 1
                assert dict(mix)[v] != solution.replicas[v]
                assert all(problem.variants[w].lower <= n <= problem.variants[w].upper for w, n in mix)
    assert told


@pytest.mark.parametrize("price", [0, 7])
def test_no_node_is_asked_for_that_nobody_needs(price: int) -> None:
    """Also where nodes cost nothing, so that any number of them is as good."""
    for seed in range(50_000, 50_000 + often(60)):
        problem = small_problem(Random(seed))
        growth = tuple(replace(terms, price=price, limit=20) for terms in problem.growth)
        solution = place(replace(problem, growth=growth), effort=EFFORT)
        for index, count in enumerate(solution.added):
            assert count <= sum(pods for _, g, pods in solution.grown if g == index), seed


@pytest.mark.parametrize(
    ("models", "seed", "effort"), [(20, 0, 1.0), (40, 1, 0.2), (70, 5, 0.2), (130, 5, 0.2), (60, 3, 1e-3)]
)
def test_what_is_needed_more_is_never_given_up_for_effort(models: int, seed: int, effort: float) -> None:
    """In the order of levels, more effort reaches the same or better, and no bound is above a value."""
    given = world("plan-scarce", models, seed=seed)
    settings = replace(Settings(), wall_seconds=600, relief_solves=0, deterministic_seconds=effort)
    made, none = (
        plan(given, PlanningState(), each)[0].solver.levels
        for each in (settings, replace(settings, deterministic_seconds=1e-9))
    )
    assert [level.value for level in made] <= [level.value for level in none]
    assert all(level.bound <= level.value for level in (*made, *none))


def test_a_proof_says_no_more_of_another_answer() -> None:
    """Behind a level with a worse value, what was proven of later ones may be wrong for the other answer.

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
def test_a_mix_around_the_linear_solution_that_a_ceiling_forbids_is_left_out(quota: int) -> None:
    """The quota divides a model whose own ceiling forbids what rounding its mean up would make."""
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


def test_a_model_of_many_variants_is_planned() -> None:
    """More of them than an array may have dimensions; each but one has nothing to choose."""
    many = (terms(10, upper=2), *(terms(10, upper=0) for _ in range(70)))
    problem = PlacementProblem(
        variants=many,
        free=(8,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=tuple(range(len(many)))),),
        rows=(demand(0, 2, *((v, 1) for v in range(len(many))), priority=0),),
    )
    assert place(problem, effort=EFFORT).replicas[0] == 2


def test_the_price_of_nodes_that_is_too_large_to_compare_is_refused() -> None:
    """As that of replicas is, with what to lower."""
    problem = PlacementProblem(
        variants=(terms(1, upper=2),),
        free=(),
        bins=(Bin(nodes=(), sizes=(1,), variants=(0,)),),
        rows=(demand(0, 2, (0, 1), priority=0),),
        growth=(GrowthTerms(name="pool", bin=0, accelerators=8, price=10**15, limit=1000),),
    )
    with pytest.raises(NumbersTooLargeError, match="pool: the price of up to 1000 nodes"):
        place(problem, effort=EFFORT)


@pytest.mark.parametrize("can_be_added", [False, True], ids=["a node in no block", "a node to be added"])
def test_a_pod_larger_than_a_gang_needs_no_block(*, can_be_added: bool) -> None:
    """It goes to one node, wherever that stands, and no bound says otherwise."""
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
def test_a_gang_goes_to_nodes_that_are_added_to_its_domain(limit: int) -> None:
    """Beside a node that has room for one pod only; two replicas need three more."""
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


def test_a_divided_model_of_many_variants_is_planned() -> None:
    """What may be rounded both ways grows with what the linear solution divides, not with the variants."""
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


def test_what_leaves_a_node_is_counted_once_however_many_mixes_leave_it() -> None:
    """Otherwise a node that could hold many pods is taken for one too large to look at each packing."""
    held = replace(terms(10, size=5, upper=12, current=12), bound=((0,),) * 12)
    problem = PlacementProblem(
        variants=(held, terms(9, size=4, upper=60), terms(8, size=3, upper=60)),
        free=(10,),
        bins=(Bin(nodes=(0,), sizes=(3, 4, 5), variants=(0, 1, 2)),),
        rows=(demand(0, 30, (0, 4), (1, 3), priority=1), demand(1, 17, (2, 1), priority=0)),
    )
    solution = place(problem, effort=EFFORT)
    assert not solution.unproven
