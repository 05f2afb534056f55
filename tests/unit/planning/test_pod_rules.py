"""Rules on domains: their rows, their choice of domains and their numbers of pods agree with each other."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from support.campaign import often
from support.planning_builders import EFFORT

from controller.planning.cpsat import Program
from controller.planning.pod_rules import EMPTY_DOMAIN, Domains, NewUnits, SpreadTerms

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


def _case(make: Callable[[Random, tuple[int, ...]], SpreadTerms], seed: int) -> tuple[SpreadTerms, Domains]:
    """Return a rule over up to three zones, some without nodes for new pods, with bound pods."""
    random = Random(seed)
    zones = tuple(range(random.choice((1, 2, 3, 3))))
    rule = make(random, zones)
    bound = {domain: random.choice((0, 0, 1, 2, 4)) if domain in zones else 0 for domain in rule.domains}
    reachable = tuple(zone for zone in zones if random.random() < 0.8)
    return rule, Domains(pods=bound, reachable=reachable)


def _placed_in_turn(rule: SpreadTerms, domains: Domains) -> list[set[Placed]]:
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


def _is_solution(rule: SpreadTerms, domains: Domains, placed: Placed) -> bool:
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
