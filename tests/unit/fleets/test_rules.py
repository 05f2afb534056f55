"""Fleets with spread and colocation rules, and the verification of these rules by trying every order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest
from support import plain_problems

from controller.planning.pod_rules import MostPerNode, SpreadTerms
from controller.planning.problem import NO_DOMAIN, Bin, PlacementProblem, Solution, VariantTerms
from hack.fleets.catalogue import Instance
from hack.fleets.verify import wrong

ZONES = (0, 0, 1, 2, NO_DOMAIN)
FREE = 8


def problem_of(terms: VariantTerms) -> PlacementProblem:
    """Return a problem of one variant: two nodes in zone 0, one each in zones 1 and 2, one in no zone."""
    return PlacementProblem(
        variants=(terms,),
        free=(FREE,) * len(ZONES),
        bins=tuple(Bin(nodes=(node,), sizes=(1,), variants=(0,)) for node in range(len(ZONES))),
        rows=(),
        topologies=(ZONES,),
    )


def terms_of(**changes: object) -> VariantTerms:
    """Return a variant with one accelerator per pod."""
    return replace(plain_problems.terms(1, upper=99), **changes)  # type: ignore[arg-type]


def said(terms: VariantTerms, *placements: tuple[int, int]) -> str:
    """Return the errors of an answer with new pods, given as (node, pods)."""
    replicas = len(terms.bound_replicas) + sum(pods for _, pods in placements) // terms.pods
    answer = Solution(replicas=(replicas,), placements=tuple((0, node, pods) for node, pods in placements))
    return "; ".join(wrong(problem_of(terms), answer))


EVEN = SpreadTerms(topology=0, max_skew=1, domains=(0, 1, 2))
LYING = terms_of(spread=EVEN, current=3, bound_replicas=((0,), (0,), (2,)))

SENTENCES = {
    "pods are spread evenly": (terms_of(spread=EVEN), [(0, 1), (2, 1), (3, 1)], ""),
    "too many in a zone": (terms_of(spread=EVEN), [(0, 1), (1, 1)], "2 pods in zone 0, 0 where"),
    "bound pods may be uneven": (LYING, [(3, 1)], ""),
    "bound pods are counted": (LYING, [(2, 1)], "2 pods in zone 1, 0 where"),
    "a node in no zone": (terms_of(spread=EVEN), [(4, 1)], "zone -1 is none"),
    "few on a node": (terms_of(most_per_node=MostPerNode(pods=2)), [(0, 2), (1, 1)], ""),
    "many on a node": (
        terms_of(most_per_node=MostPerNode(pods=2), bound_replicas=((0,),), current=1),
        [(0, 2)],
        "3 pods on node 0",
    ),
    "a divided replica": (terms_of(pods=2, together=0), [(0, 1), (2, 1)], "1 pods in rack 0, a replica"),
    "a replica in an unknown rack": (terms_of(pods=2, together=0), [(4, 2)], "where no rack is known"),
    "a replica in one rack": (terms_of(pods=2, together=0), [(2, 2)], ""),
    "half of a replica": (terms_of(pods=2), [(0, 3)], "3 places for 2 pods"),
}  # fmt: skip


@pytest.mark.parametrize(("terms", "placed", "sentence"), SENTENCES.values(), ids=SENTENCES.keys())
def test_violations_of_every_rule_are_found(
    terms: VariantTerms, placed: list[tuple[int, int]], sentence: str
) -> None:
    """A feasible answer has no error."""
    found = said(terms, *placed)

    assert sentence in found
    assert bool(found) == bool(sentence)


def test_nodes_of_different_bins_do_not_share_a_replica() -> None:
    """Nodes 0 and 1 are in one rack, but in different bins."""
    assert "1 pods in rack 0" in said(terms_of(pods=2, together=0), (0, 1), (1, 1))


@pytest.mark.parametrize("skew", [1, 2])
def test_a_spread_is_feasible_exactly_if_some_order_of_pods_is_feasible(skew: int) -> None:
    """All combinations of bound and new pods over three zones are tried, with every order of the new pods."""
    spread = SpreadTerms(topology=0, max_skew=skew, domains=(0, 1, 2))
    nodes = (0, 2, 3)
    for bound_pods in product(range(3), repeat=3):
        bound = tuple((nodes[zone],) for zone in range(3) for _ in range(bound_pods[zone]))
        terms = terms_of(spread=spread, bound_replicas=bound, current=len(bound))
        for new in product(range(3), repeat=3):
            pods = [zone for zone in range(3) for _ in range(new[zone])]
            possible = any(_is_kept(order, bound_pods, skew) for order in set(permutations(pods)))
            placed = [(nodes[zone], count) for zone, count in enumerate(new) if count]
            assert (said(terms, *placed) == "") == possible, (bound_pods, new)


def _is_kept(order: tuple[int, ...], bound_pods: tuple[int, ...], skew: int) -> bool:
    counts = list(bound_pods)
    for zone in order:
        counts[zone] += 1
        if counts[zone] - min(counts) > skew:
            return False
    return True


def test_bins_have_one_zone_and_about_half_of_the_models_are_spread() -> None:
    """The domains of a spread are the zones of the nodes that the variant may use."""
    problem = Instance(family="F9-zones-3", size=100, seed=0).problem()
    (zone_of,) = problem.topologies
    spread = {terms.name.partition("-")[0] for terms in problem.variants if terms.spread}

    assert all(len({zone_of[node] for node in bin_.nodes}) == 1 for bin_ in problem.bins)
    assert 35 <= len(spread) <= 65
    for v, terms in enumerate(problem.variants):
        usable = {zone_of[n] for bin_ in problem.bins if v in bin_.variants for n in bin_.nodes}
        assert terms.spread is None or set(terms.spread.domains) == usable


def test_replicas_of_several_nodes_are_placed_in_one_rack() -> None:
    """Replicas have 16 or 32 accelerators, others less than a node."""
    problem = Instance(family="F12-racks", size=100, seed=0).problem()
    spanning = {(terms.pods, terms.accelerators) for terms in problem.variants if terms.pods > 1}
    single = {terms.accelerators for terms in problem.variants if terms.pods == 1}

    assert spanning == {(2, 8), (4, 8)}
    assert {1, 2, 4} <= single
    assert all((terms.together == 0) == (terms.pods > 1) for terms in problem.variants)
    assert max(problem.topologies[0].count(rack) for rack in set(problem.topologies[0])) == 8
