"""Rules on domains: their statements agree, and which domains get a pod if the solver does not choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from support.campaign import often
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT

from controller.planning.cpsat import Program
from controller.planning.engine import place
from controller.planning.engine.demands import bins_by_domain, orders
from controller.planning.pod_rules import EMPTY_DOMAIN, NewUnits, RuleDomains, SpreadTerms
from controller.planning.problem import Bin, GrowthTerms, PlacementProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_NEW: Final = 5
SEEDS: Final = range(often(30))

Placed = tuple[int, ...]
"""The new pods of each reachable domain."""


def _spread(random: Random, domains: tuple[int, ...]) -> SpreadTerms:
    empty = (EMPTY_DOMAIN,) if random.random() < 0.2 else ()
    return SpreadTerms(topology=0, max_skew=random.choice((1, 1, 2, 3)), domains=(*domains, *empty))


RULES: Final[Mapping[str, Callable[[Random, tuple[int, ...]], SpreadTerms]]] = {"spread": _spread}


def _case(
    make: Callable[[Random, tuple[int, ...]], SpreadTerms], seed: int
) -> tuple[SpreadTerms, RuleDomains]:
    """Return a rule over up to three zones, some without nodes for new pods, with bound pods."""
    random = Random(seed)
    zones = tuple(range(random.choice((1, 2, 3, 3))))
    rule = make(random, zones)
    bound = {domain: random.choice((0, 0, 1, 2, 4)) if domain in zones else 0 for domain in rule.domains}
    reachable = tuple(zone for zone in zones if random.random() < 0.8)
    return rule, RuleDomains(pods=bound, reachable=reachable)


def _placed_in_turn(rule: SpreadTerms, domains: RuleDomains) -> list[set[Placed]]:
    """Return the distributions of 0, 1, and so on new pods that are placed one after the other."""
    found = [{(0,) * len(domains.reachable)}]
    for _ in range(MOST_NEW):
        more = set()
        for placed in found[-1]:
            pods = dict(domains.pods)
            for domain, number in zip(domains.reachable, placed, strict=True):
                pods[domain] += number
            for at, domain in enumerate(domains.reachable):
                if domain in rule.open_domains(pods):
                    more.add((*placed[:at], placed[at] + 1, *placed[at + 1 :]))
        found.append(more)
    return found


def _is_solution(rule: SpreadTerms, domains: RuleDomains, placed: Placed) -> bool:
    """Return whether the rows of a program allow a distribution."""
    program = Program()
    total = sum(placed)
    units = NewUnits(terms=[(program.constant(), total)], most=total, pods=1)
    parts = rule.parts(program, units, domains)
    for domain, number in zip(domains.reachable, placed, strict=True):
        program.row(parts.get(domain, []), least=number, most=number)
    return bool(program.solve(EFFORT).values)


@pytest.mark.parametrize("make", RULES.values(), ids=RULES.keys())
def test_the_statements_of_a_rule_agree(make: Callable[[Random, tuple[int, ...]], SpreadTerms]) -> None:
    """They are compared with all distributions in which pods can be placed one after the other."""
    for seed in SEEDS:
        rule, domains = _case(make, seed)
        most = rule.most_new_pods(domains)
        pods = range(MOST_NEW + 1)
        least = rule.least_new_pods(domains, pods)
        for number, placed in zip(pods, _placed_in_turn(rule, domains), strict=True):
            assert bool(placed) == (bool(domains.reachable) or not number) * (most is None or number <= most)
            if not placed:
                break
            for at, domain in enumerate(domains.reachable):
                fewest = least[domain][number] if domain in least else 0
                assert fewest <= min(one[at] for one in placed), (seed, number)
            every = product(range(number + 1), repeat=len(domains.reachable))
            of_rows = {one for one in every if sum(one) == number and _is_solution(rule, domains, one)}
            assert of_rows == placed, (seed, number)


ROOM = {0: 16, 1: 8, 2: 8}
"""Free accelerators of each domain, on one node each."""

SPREAD = SpreadTerms(topology=0, max_skew=1, domains=tuple(ROOM))
MODELS = 40


def _problem() -> PlacementProblem:
    return PlacementProblem(
        variants=tuple(replace(terms(10), spread=SPREAD) for _ in range(MODELS)),
        bins=tuple(Bin(nodes=(d,), sizes=(1,), variants=tuple(range(MODELS))) for d in ROOM),
        free=tuple(ROOM.values()),
        rows=tuple(demand(model, 3, (model, 1)) for model in range(MODELS)),
        topologies=(tuple(ROOM),),
    )


def _orders(problem: PlacementProblem, replicas: list[int]) -> Mapping[int, list[int]]:
    return orders(problem, bins_by_domain(problem), replicas)


def test_a_domain_gets_one_pod_more_in_proportion_to_its_room() -> None:
    """With one pod per variant, the domain with half of the room gets half of the pods."""
    found = _orders(_problem(), [1] * MODELS)
    assert all(sorted(order) == [*ROOM] for order in found.values())
    first = Counter(order[0] for order in found.values())
    assert abs(first[0] - MODELS / 2) <= 2
    assert abs(first[1] - first[2]) <= 2


def test_pods_that_every_domain_gets_reduce_its_room() -> None:
    """Three pods of a variant are one in each domain, so the smaller domains have less room left."""
    found = _orders(_problem(), [3] * (MODELS - 1) + [0])
    assert found[MODELS - 1][0] == 0


def test_a_domain_without_any_room_comes_last() -> None:
    """One more pod would have no place there."""
    full = replace(_problem(), free=(16, 0, 8))
    assert {order[-1] for order in _orders(full, [0] * MODELS).values()} == {1}


def test_a_domain_that_already_has_a_pod_gets_no_additional_one() -> None:
    """The next pod goes to another domain, which leaves the room of this one to others."""
    problem = _problem()
    held = replace(problem.variants[0], bound_replicas=((0,),), current=1)
    one = replace(problem, variants=(held, *problem.variants[1:]), free=(8, 8, 8))
    assert _orders(one, [2] + [0] * (MODELS - 1))[1][0] == 0


def test_pods_that_a_large_skew_leaves_open_reduce_the_room_of_domains() -> None:
    """Twelve pods with a skew of 20 in two large domains make the small one the emptiest."""
    problem = replace(_problem(), free=(16, 16, 8))
    large = SpreadTerms(topology=0, max_skew=20, domains=(0, 1))
    first = replace(problem.variants[0], spread=large)
    skewed = replace(problem, variants=(first, *problem.variants[1:]))
    assert _orders(skewed, [12] + [0] * (MODELS - 1))[1][0] == 2


@pytest.mark.parametrize("has_demand", [False, True])
def test_a_domain_whose_nodes_are_not_added_gets_no_pods(*, has_demand: bool) -> None:
    """A program assigns the pods, since best-fit decreasing fails by placing the size of 3 on the 4 free."""
    spread = replace(terms(10, size=2, upper=1), spread=SpreadTerms(topology=0, max_skew=1, domains=(0, 1)))
    rows = [demand(0, 1, (0, 1)), demand(1, 3, (1, 1))]
    problem = PlacementProblem(
        variants=(terms(10, size=3, upper=1), terms(10, size=2, upper=3), spread),
        bins=(
            Bin(nodes=(0, 1), sizes=(2, 3), variants=(0, 1, 2)),
            Bin(nodes=(), sizes=(2,), variants=(2,)),
        ),
        free=(4, 5),
        rows=(*rows, demand(2, 1, (2, 1), priority=0)) if has_demand else tuple(rows),
        topologies=((0, 0),),
        growth=(GrowthTerms(name="g", bin=1, accelerators=4, price=10**6, limit=3, domains=(1,)),),
    )
    assert place(problem, effort=EFFORT).replicas == (1, 3, int(has_demand))
