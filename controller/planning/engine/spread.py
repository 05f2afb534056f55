"""Spread pods over the domains of a topology (core/v1 `topologySpreadConstraints`).

A new pod may be placed in a domain only if the variant's pods there then exceed those of the domain with the
fewest by at most `max_skew`. There are new pods only if all bound replicas stay, so the bound pods of each
domain are constants wherever the constraint matters.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from controller.planning.cpsat import Program, Terms
from controller.planning.engine.shared import Integers
from controller.planning.problem import PlacementProblem, SpreadTerms, VariantTerms, bins_of


def bins_by_domain(problem: PlacementProblem) -> Mapping[int, dict[int, tuple[int, ...]]]:
    """Return the bins in each domain, for each variant that spreads its pods; only domains with bins."""
    found = {}
    grown = {growth.bin for growth in problem.growth}
    for v, (terms, bins) in enumerate(zip(problem.variants, bins_of(problem), strict=True)):
        if terms.spread is None or not terms.accelerators:
            continue
        where: dict[int, list[int]] = {}
        for bin_ in bins:
            if not problem.bins[bin_].nodes and bin_ not in grown:
                continue  # none of its nodes is added
            where.setdefault(_domain_of(problem, bin_, terms.spread), []).append(bin_)
        found[v] = {d: tuple(where[d]) for d in terms.spread.domains if d in where}
    return found


def bound_by_domain(problem: PlacementProblem, terms: VariantTerms) -> dict[int, int]:
    """Return the number of bound pods of a variant in each of its domains."""
    spread = terms.spread
    if spread is None:
        return {}
    counts = dict.fromkeys(spread.domains, 0)
    for nodes in terms.bound_replicas:
        for node in nodes:
            domain = problem.topologies[spread.topology][node]
            if domain in counts:
                counts[domain] += 1
    return counts


def most_new_pods(counts: Mapping[int, int], reachable: Mapping[int, object], max_skew: int) -> int | None:
    """Return the maximum number of new pods; None if every domain can take some."""
    closed = [count for domain, count in counts.items() if domain not in reachable]
    if not closed:
        return None
    most = min(closed) + max_skew
    return sum(max(0, most - count) for domain, count in counts.items() if domain in reachable)


def least_new_pods(
    counts: Mapping[int, int], reachable: Collection[int], max_skew: int, pods: Integers
) -> dict[int, Integers]:
    """Return the least number of pods that each domain gets of `pods` new ones (n,), however spread.

    The other domains take as many as they can while this one has the fewest.
    """
    known: dict[tuple[int, ...], Integers] = {}
    found = {}
    for domain in reachable:
        others = tuple(sorted(counts[d] - counts[domain] for d in reachable if d != domain))
        if others not in known:
            here = np.arange(int(pods.max(initial=0)) + 1)
            room = here + max_skew - np.array(others, dtype=np.int64)[:, None]
            # The sum at h is the most pods that all domains can take if this one gets h.
            known[others] = np.searchsorted(here + np.maximum(room, 0).sum(axis=0), pods)
        found[domain] = known[others]
    return found


def orders(
    problem: PlacementProblem, domains: Mapping[int, Mapping[int, Sequence[int]]], replicas: Sequence[int]
) -> Mapping[int, list[int]]:
    """Return in which order domains get one pod more, for each variant that spreads its pods.

    `domains` are those of `bins_by_domain`; `replicas` are about those that each variant will have. The
    largest pods choose first: the domain of whose room the smallest share is taken comes first.
    """
    loads, found = _Loads(problem), {}
    for v in sorted(domains, key=lambda v: (-problem.variants[v].accelerators, v)):
        terms, reachable = problem.variants[v], domains[v]
        new = max(0, replicas[v] - len(terms.bound_replicas)) * terms.pods
        counts = bound_by_domain(problem, terms)
        amounts = least_new_pods(counts, reachable, 1, np.array([new]))
        least = {domain: int(pods[0]) for domain, pods in amounts.items()}
        for domain, pods in least.items():
            loads.add(reachable[domain], terms.accelerators * pods)
        shares = {domain: loads.share(bins, terms.accelerators) for domain, bins in reachable.items()}
        found[v] = sorted(reachable, key=lambda domain: (shares[domain], domain))
        for domain in _takers(counts, least, found[v])[: new - sum(least.values())]:
            loads.add(reachable[domain], terms.accelerators)
    return found


def _takers(counts: Mapping[int, int], least: Mapping[int, int], domains: Iterable[int]) -> list[int]:
    """Return the domains that may get one pod more once each has the least number of new pods."""
    fewest = min((counts[domain] + pods for domain, pods in least.items()), default=0)
    return [domain for domain in domains if counts[domain] <= fewest]


class _Loads:
    """How much of the room of each bin is taken, in accelerators."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._room = [sum(max(0, problem.free[node]) for node in bin_.nodes) for bin_ in problem.bins]
        for growth in problem.growth:
            self._room[growth.bin] += growth.accelerators * growth.limit
        self._taken = [0.0] * len(self._room)

    def add(self, bins: Sequence[int], accelerators: int) -> None:
        """Take accelerators, evenly in some bins."""
        for bin_ in bins:
            self._taken[bin_] += accelerators / len(bins)

    def share(self, bins: Sequence[int], accelerators: int) -> float:
        """Return the share of some bins that would be taken with more accelerators."""
        room = sum(self._room[bin_] for bin_ in bins)
        return (sum(self._taken[bin_] for bin_ in bins) + accelerators) / room if room else math.inf


def spread_evenly(
    program: Program,
    counts: Mapping[int, int],
    reachable: Collection[int],
    new: Terms,
    order: Sequence[int] | None,
) -> dict[int, Terms]:
    """Return the new pods of each domain, as terms, for a skew of at most 1; add their rows.

    All domains that get pods then end with the same number, or with one more. The least number of each domain
    follows from the total; each gets at most one of the rest: as the solver chooses, or, without variables,
    the first domains of `order`.
    """
    parts: dict[int, Terms] = {domain: [] for domain in reachable}
    rest: list[tuple[int, int, list[int]]] = []
    fewest = least_new_pods(counts, reachable, 1, np.array([pods for _, pods in new], dtype=np.int64))
    for turn, (variable, pods) in enumerate(new):
        least = {domain: int(amounts[turn]) for domain, amounts in fewest.items()}
        left = pods - sum(least.values())
        for domain, amount in least.items():
            if amount:
                parts[domain].append((variable, amount))
        takers = _takers(counts, least, order or reachable)
        if order is None and left:
            rest.append((variable, left, takers))
        elif order is not None:
            for domain in takers[:left]:
                parts[domain].append((variable, 1))
    if rest:
        _choose_domains(program, parts, rest)
    return parts


def _choose_domains(
    program: Program, parts: dict[int, Terms], rest: Sequence[tuple[int, int, Sequence[int]]]
) -> None:
    """Let the solver choose the domains that get one more pod, add these to the parts, and add the rows.

    `rest` has, for each variable, the number of remaining pods if it is 1, and the domains that may get one.
    """
    chosen = dict(zip(parts, program.variables(len(parts)), strict=True))
    for domain, one_more in chosen.items():
        parts[domain].append((one_more, 1))
        open_to = [variable for variable, _, takers in rest if domain in takers]
        if len(open_to) < len(rest):
            program.row([(one_more, 1), *((variable, -1) for variable in open_to)], most=0)
    left = [(variable, pods) for variable, pods, _ in rest]
    program.row([*left, *((one_more, -1) for one_more in chosen.values())], least=0, most=0)


def spread_within(
    program: Program,
    spread: SpreadTerms,
    counts: Mapping[int, int],
    reachable: Collection[int],
    *,
    new: Terms,
    most: int,
    pods: int,
) -> dict[int, Terms]:
    """Return the new units of `pods` of each domain, as terms, at most `most`; add the rows for any skew.

    If the bound pods satisfy the constraint by themselves, it also holds without new pods, and needs no
    condition.
    """
    chosen = dict(zip(reachable, program.variables(len(reachable), most), strict=True))
    program.row([*new, *((variable, -1) for variable in chosen.values())], least=0, most=0)
    fewest = program.variables(1, max(counts.values(), default=0) + pods * most).start
    for domain, count in counts.items():
        here: Terms = [(chosen[domain], -pods)] if domain in chosen else []
        program.row([(fewest, 1), *here], most=count)
    for domain, variable in chosen.items():
        ahead = spread.max_skew - counts[domain]
        if counts[domain] - min(counts.values()) <= spread.max_skew:
            program.row([(variable, pods), (fewest, -1)], most=ahead)
            continue
        gets = program.variables(1).start
        program.switch(variable, gets)
        program.row([(variable, pods), (fewest, -1)], most=ahead, only_if=gets)
    return {domain: [(variable, 1)] for domain, variable in chosen.items()}


def _domain_of(problem: PlacementProblem, bin_: int, spread: SpreadTerms) -> int:
    """Return the domain that contains all nodes of a bin."""
    nodes: Sequence[int] = problem.bins[bin_].nodes
    if nodes:
        return problem.topologies[spread.topology][nodes[0]]
    return next(growth.domains[spread.topology] for growth in problem.growth if growth.bin == bin_)
