"""The placement engine on problems that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT

from controller.planning.engine import alone, place
from controller.planning.engine.assign import Vacancies
from controller.planning.engine.levels import with_values
from controller.planning.problem import (
    COST,
    NO_DOMAIN,
    Bin,
    CountedReplicas,
    GrowthTerms,
    LimitKind,
    LimitRow,
    NumbersTooLargeError,
    PlacementProblem,
    Proof,
    Solution,
    Stage,
)


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


def test_the_demand_of_a_model_without_variants_stays_unmet() -> None:
    """The row has no terms, so that all of its requirement is missing."""
    problem = PlacementProblem(
        variants=(terms(1, upper=1),),
        free=(2,),
        bins=(Bin(nodes=(0,), sizes=(1,), variants=(0,)),),
        rows=(demand(0, 5),),
    )
    solution = place(problem, effort=EFFORT)

    assert solution.replicas == (0,)
    assert [proof.value for proof in solution.proofs] == [1000, 0]


def test_an_empty_problem_has_an_empty_solution() -> None:
    """Callers need no special case for it."""
    nothing = PlacementProblem(
        variants=(), free=(4,), bins=(Bin(nodes=(0,), sizes=(), variants=()),), rows=()
    )
    assert place(nothing, effort=EFFORT) == Solution(replicas=(), placements=())


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


@pytest.mark.parametrize(("replicas", "has_room"), [(1, True), (2, False), (3, True), (4, False)])
def test_room_on_added_nodes_depends_on_the_pods_planned_on_them(replicas: int, *, has_room: bool) -> None:
    """Two replicas fill an added node of four accelerators."""
    problem = PlacementProblem(
        variants=(terms(1, size=2, upper=9),),
        free=(),
        bins=(Bin(nodes=(), sizes=(2,), variants=(0,)),),
        rows=(demand(0, replicas, (0, 1)),),
        growth=(GrowthTerms(name="pool", bin=0, accelerators=4, price=5, limit=3),),
    )
    solution = place(problem, effort=EFFORT)
    assert solution.grown == ((0, 0, replicas),)
    assert Vacancies(problem, solution).has_room_for_one(0) == has_room
