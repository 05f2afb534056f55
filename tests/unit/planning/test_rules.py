"""Topology rules: pods spread over zones, kept together in racks or apart, and replicas of several pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from support.campaign import often
from support.planning_builders import EFFORT, node, variant
from support.small_problems import added_nodes, best_rank, constrained_problem, is_possible, keeps_rules, rank
from support.small_snapshots import constrained_snapshot

from controller.planning import engine
from controller.planning.checker import check
from controller.planning.cluster import NodePool
from controller.planning.decision import BoundBy
from controller.planning.engine.assign import assign
from controller.planning.inputs import PlanningInputs, Settings, from_json, to_json
from controller.planning.plan import plan
from controller.planning.pod_rules import EMPTY_DOMAIN, MostPerNode, PodRules, Spread
from controller.planning.problem import Bin, PlacementProblem, Solution, VariantTerms, free_after_removals
from controller.planning.snapshot import Snapshot

BLOCKS = 4
OVER_ZONES = PodRules(spread=Spread(topology_key="zone"))
SEEDS = range(often(160))
"""Of thousands of problems, 0.2 % were not solved to optimality: a rule left a replica without a place."""


def _holds(problem: PlacementProblem, solution: Solution) -> bool:
    """Return whether all new pods are on nodes with room that their rules allow.

    Of pods on nodes to be added only the number is checked.
    """
    free = free_after_removals(problem, solution.replicas)
    new = [Counter[int]() for _ in problem.variants]
    for v, host, pods in solution.placements:
        assert any(v in bin_.variants and host in bin_.nodes for bin_ in problem.bins)
        free[host] -= pods * problem.variants[v].accelerators
        new[v][host] += pods
    grown = Counter[int]()
    for v, _, pods in solution.grown:
        grown[v] += pods
    has_room = all(free[host] >= 0 for at in new for host in at)
    counted = all(
        at.total() + grown[v]
        == (terms.pods * max(0, count - len(terms.bound_replicas)) if terms.accelerators else 0)
        for v, (at, terms, count) in enumerate(zip(new, problem.variants, solution.replicas, strict=True))
    )
    kept = all(
        keeps_rules(problem, v, solution.replicas[v], at) for v, at in enumerate(new) if at and not grown[v]
    )
    return has_room and counted and kept


@pytest.mark.parametrize("block", range(BLOCKS))
def test_solutions_are_optimal_under_topology_rules(block: int) -> None:
    """Every pod is where its rules allow it, and no feasible solution is better in lexicographic order."""
    for seed in SEEDS[block::BLOCKS]:
        problem = constrained_problem(Random(seed))
        solution = engine.place(problem, effort=EFFORT)
        added = added_nodes(problem, solution)
        assert _holds(problem, solution), seed
        assert is_possible(problem, solution.replicas, added), seed
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed


def test_with_an_empty_domain_the_skew_limits_the_pods_in_each_domain() -> None:
    """No node belongs to the empty domain."""
    seen = 0
    for seed in SEEDS[::4]:
        problem = constrained_problem(Random(seed))
        variants = tuple(_from_zero(terms) for terms in problem.variants)
        if variants != problem.variants:
            problem = replace(problem, variants=variants)
            solution = engine.place(problem, effort=EFFORT)
            assert _holds(problem, solution), seed
            added = added_nodes(problem, solution)
            assert rank(problem, solution.replicas, added) == best_rank(problem), seed
            seen += sum(_new_pods(problem, solution))
    assert seen > BLOCKS


def _from_zero(terms: VariantTerms) -> VariantTerms:
    rule = terms.spread
    if rule is None:
        return terms
    return replace(terms, spread=replace(rule, domains=(*rule.domains, EMPTY_DOMAIN)))


def _new_pods(problem: PlacementProblem, solution: Solution) -> Iterator[int]:
    """Yield the number of pods in each placement of a variant that is spread."""
    for v, _, pods in solution.placements:
        if problem.variants[v].spread:
            yield pods


def test_no_bound_exceeds_the_optimum() -> None:
    """Bounds hold over all mixes, up to the first level that is not optimal."""
    for seed in SEEDS[: often(40)]:
        problem = constrained_problem(Random(seed))
        best = best_rank(problem)
        for proof, least in zip(engine.place(problem, effort=EFFORT).proofs, best, strict=True):
            assert proof.bound <= least, seed
            if proof.value != least:
                break


def test_assigned_pods_keep_the_rules_for_any_requested_replicas() -> None:
    """Each variant requests its maximum; the replicas that get a place keep all rules."""
    for seed in SEEDS:
        problem = constrained_problem(Random(seed))
        asked = [terms.upper for terms in problem.variants]
        found = assign(problem, asked, (0,) * len(problem.growth), EFFORT)
        assert _holds(problem, Solution(replicas=found.replicas, placements=found.placements)), seed
        assert all(
            count <= terms.upper for count, terms in zip(found.replicas, problem.variants, strict=True)
        )


def test_the_same_problem_gives_the_same_solution() -> None:
    """Repeated solutions are equal in all fields."""
    for seed in SEEDS[: often(15)]:
        problem = constrained_problem(Random(seed))
        assert engine.place(problem, effort=EFFORT) == engine.place(problem, effort=EFFORT)


def test_solutions_without_effort_are_feasible_under_topology_rules() -> None:
    """The problems have rules of all kinds."""
    for seed in SEEDS[: often(30)]:
        problem = constrained_problem(Random(seed))
        hurried = engine.place(problem, effort=replace(EFFORT, deterministic_seconds=1e-9))
        assert is_possible(problem, hurried.replicas, added_nodes(problem, hurried)), seed
        assert _holds(problem, hurried), seed


def test_the_checker_accepts_plans_of_constrained_snapshots() -> None:
    """The plans start from snapshots, in which zones are labels of nodes and not yet bins."""
    for seed in range(often(12)):
        world = constrained_snapshot(Random(seed))
        made = plan(world, Settings())
        assert made.solver.is_answered, (seed, made.solver.message)
        assert check(world, made) == (), seed
        assert from_json(to_json(PlanningInputs(snapshot=world))).snapshot == world


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param(
            {"rules": OVER_ZONES},
            "no nodes have room for one more replica (spread over zone with a skew of at most 1)",
            id="the other zone is full",
        ),
        pytest.param(
            {"rules": PodRules(spread=Spread(topology_key="zone", counts_from_zero=True))},
            "no nodes have room for one more replica (at most 1 in each zone)",
            id="at most one in each zone",
        ),
        pytest.param(
            {"rules": PodRules(most_per_node=MostPerNode(pods=1))},
            "no nodes have room for one more replica (at most 1 on each node)",
            id="at most one on each node",
        ),
        pytest.param(
            {"accelerators_per_replica": 8, "pods_per_replica": 4, "together_in": "zone"},
            "no nodes have room for one more replica (4 pods of 2 in one zone)",
            id="no zone has room for all of a replica",
        ),
    ],
)
def test_the_message_names_the_rule_that_leaves_no_place(rule: dict[str, Any], want: str) -> None:
    """Accelerators are free, so a lack of them is not the reason."""
    nodes = (
        node("n1", 6, labels=frozenset({("zone", "a")})),
        node("n2", 8, used=7, labels=frozenset({("zone", "b")})),
    )
    busy = variant("chat", size=2, current_replicas=0, min_replicas=3, **rule)
    made = plan(Snapshot(nodes=nodes, variants=(busy,)), Settings())

    (decision,) = made.decisions
    assert decision.bound_by is BoundBy.TOPOLOGY
    assert want in decision.message


def test_nodes_of_a_hundred_accelerators_with_uneven_sizes_are_solved() -> None:
    """If there are too many packings to enumerate, sizes are rounded up."""
    base = constrained_problem(Random(0)).variants[0]
    variants = tuple(
        replace(
            base,
            name=f"v{size}",
            accelerators=size,
            bound_replicas=(),
            lower=0,
            upper=20,
            pods=1,
            together=None,
        )
        for size in (1, 3, 5, 7, 9, 11)
    )
    plain = tuple(replace(terms, spread=None, most_per_node=None) for terms in variants)
    problem = PlacementProblem(
        variants=plain,
        free=(100, 99, 97),
        bins=(Bin(nodes=(0, 1, 2), sizes=(1, 3, 5, 7, 9, 11), variants=tuple(range(6))),),
        rows=(),
    )
    solution = engine.place(problem, effort=EFFORT)
    assert _holds(problem, solution)


def test_gangs_are_planned_beside_nodes_that_can_be_added() -> None:
    """Nodes to be added are in no rack, so only single pods may use them."""
    rack = frozenset({("rack", "r")})
    pool = NodePool(
        name="more", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(1), nodes_addable=2
    )
    pair = variant("pair", model_id="pair", size=16, pods_per_replica=2, together_in="rack", min_replicas=1)
    single = variant("single", model_id="single", size=8, min_replicas=2)
    world = Snapshot(
        nodes=tuple(node(f"n{k}", 8, labels=rack) for k in range(2)), variants=(pair, single), pools=(pool,)
    )
    made = plan(world, Settings())

    assert check(world, made) == ()
    assert {decision.name: decision.replicas for decision in made.decisions} == {"pair": 1, "single": 2}
    assert [request.nodes for request in made.requests] == [2]


@pytest.mark.parametrize(
    "rule",
    [{"rules": OVER_ZONES}, {"together_in": "zone", "pods_per_replica": 2}],
)
def test_a_placement_on_a_missing_node_is_rejected(rule: dict[str, Any]) -> None:
    """The checker reports it and does not fail, whatever rules the pods have."""
    zone = frozenset({("zone", "a")})
    world = Snapshot(
        nodes=(node("n1", 8, labels=zone),), variants=(variant("v", size=2, min_replicas=1, **rule),)
    )
    made = plan(world, Settings())
    misplaced = replace(made, placements=tuple(replace(place, node="gone") for place in made.placements))

    assert "v: may not go to node gone" in check(world, misplaced)
