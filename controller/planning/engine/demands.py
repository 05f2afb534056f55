"""Demands on nodes: new units in the domains that rules allow, aggregated by equal needs.

Units of different variants with the same size and the same bins are interchangeable, so a program needs one
number for all of them, and their places are handed out afterwards. A variant with a limit per node has a
demand of its own. A rule on domains divides the units of a variant into one demand for each domain, with the
rows of the rule. Rules for pods say how many of them nodes and domains could take, given those that exist.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.planning.cpsat import Program, Terms
from controller.planning.engine.shared import item_type
from controller.planning.pod_rules import NewUnits, RuleDomains, SpreadTerms, allowed_on_node
from controller.planning.problem import UNLIMITED_REPLICAS, PlacementProblem, VariantTerms, bins_of

MOST_DOMAIN_CHOICES = 2000
"""Number of domains, over all variants, up to which the solver chooses those that get one pod more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """A number in a program: of units that need places, or of accelerators that may become free."""

    terms: Terms
    """The number, as a sum of variables."""

    most: int
    """Upper bound on the number."""


@dataclass(frozen=True, kw_only=True)
class UnitDemand:
    """New units of one kind: of a variant with rules on nodes, or of all variants with equal needs."""

    accelerators: int
    """Accelerators per pod."""

    pods: int
    """Pods per unit, which are placed together in one block; 1 for single pods."""

    topology: int
    """The topology whose domains are the blocks, or `shared.NO_TOPOLOGY`."""

    bins: tuple[int, ...]
    """The bins that the units may use."""

    variant: int
    """The variant if it has rules on nodes, otherwise -1."""

    parts: tuple[tuple[int, Amount], ...]
    """The units of each variant."""

    @property
    def units(self) -> Terms:
        """The number of units, as a sum of variables."""
        return [term for _, part in self.parts for term in part.terms]

    @property
    def most(self) -> int:
        """Upper bound on the number of units."""
        return sum(part.most for _, part in self.parts)


def demands_of(
    program: Program,
    problem: PlacementProblem,
    new: Mapping[int, Amount],
    *,
    likely: Sequence[int] | None,
) -> tuple[list[UnitDemand], bool]:
    """Return the demands on nodes; add the rows of rules on domains.

    The second value tells whether the domains that get one pod more are fixed. This is done if there are too
    many to choose from, and only if the `likely` number of replicas of each variant is given.
    """
    alike: dict[tuple[int, int, int, tuple[int, ...], int], list[tuple[int, Amount]]] = defaultdict(list)
    domains = bins_by_domain(problem)
    bins = bins_of(problem)
    choices = sum(len(domains[v]) for v in new if v in domains)
    fixes_domains = likely is not None and choices > MOST_DOMAIN_CHOICES
    in_order = orders(problem, domains, likely) if likely is not None and fixes_domains else {}
    for v, replicas in sorted(new.items()):
        terms = problem.variants[v]
        if not terms.accelerators or not replicas.terms:
            continue
        own = v if terms.most_per_node else -1
        kind = item_type(terms, ())
        key = kind.accelerators, kind.pods, kind.topology
        each = terms.pods // kind.pods
        units = NewUnits(
            terms=[(variable, weight * each) for variable, weight in replicas.terms],
            most=replicas.most * each,
            pods=kind.pods,
            order=in_order.get(v),
        )
        rule = terms.spread
        if rule is None:
            alike[*key, tuple(bins[v]), own].append((v, Amount(terms=units.terms, most=units.most)))
            continue
        reachable = domains[v]
        before = domains_of(problem, terms, rule, reachable)
        # Options have this limit already; replica counts that were not made of options may not.
        most = rule.most_new_pods(before)
        if most is not None and units.most * units.pods > most:
            program.row(units.terms, most=most // units.pods)
        for domain, part in rule.parts(program, units, before).items():
            here = Amount(terms=part, most=units.most)
            alike[*key, reachable[domain], own].append((v, here))
    demands = [
        UnitDemand(
            accelerators=size, pods=pods, topology=topology, bins=where, variant=own, parts=tuple(parts)
        )
        for (size, pods, topology, where, own), parts in sorted(alike.items(), key=lambda item: item[0])
    ]
    return demands, fixes_domains


def bound_pods(terms: VariantTerms) -> Counter[int]:
    """Return the number of bound pods of a variant on each node."""
    return Counter(node for nodes in terms.bound_replicas for node in nodes)


def most_on_node(terms: VariantTerms, pods_on_node: int, free: int) -> int:
    """Return the maximum number of new pods on a node with some bound pods and free accelerators."""
    return allowed_on_node(terms.most_per_node, pods_on_node, max(0, free) // terms.accelerators)


def most_on_alike(terms: VariantTerms, nodes: Iterable[tuple[int, int]]) -> int:
    """Return the maximum number of new pods on nodes, given (bound pods, free accelerators) of each."""
    return sum(count * most_on_node(terms, *node) for node, count in Counter(nodes).items())


def most_on_nodes(
    problem: PlacementProblem, terms: VariantTerms, bins: Sequence[int], free: Sequence[int]
) -> int:
    """Return the maximum number of new pods on all nodes, given the free accelerators of each."""
    if not terms.most_per_node:
        return UNLIMITED_REPLICAS
    there = bound_pods(terms)
    nodes = ((there[node], free[node]) for bin_ in bins for node in problem.bins[bin_].nodes)
    return most_on_alike(terms, nodes) + sum(
        growth.limit * most_on_node(terms, 0, growth.accelerators)
        for growth in problem.growth
        if growth.bin in bins
    )


def bins_by_domain(problem: PlacementProblem) -> Mapping[int, dict[int, tuple[int, ...]]]:
    """Return the bins in each domain, for each variant with a rule on domains; only domains with bins."""
    by_variant = {}
    grown = {growth.bin for growth in problem.growth}
    for v, (terms, bins) in enumerate(zip(problem.variants, bins_of(problem), strict=True)):
        rule = terms.spread
        if rule is None or not terms.accelerators:
            continue
        where: dict[int, list[int]] = {}
        for bin_ in bins:
            if not problem.bins[bin_].nodes and bin_ not in grown:
                continue  # none of its nodes is added
            where.setdefault(_domain_of(problem, bin_, rule), []).append(bin_)
        by_variant[v] = {d: tuple(where[d]) for d in rule.domains if d in where}
    return by_variant


def _domain_of(problem: PlacementProblem, bin_: int, rule: SpreadTerms) -> int:
    """Return the domain that contains all nodes of a bin."""
    nodes: Sequence[int] = problem.bins[bin_].nodes
    if nodes:
        return problem.topologies[rule.topology][nodes[0]]
    return next(growth.domains[rule.topology] for growth in problem.growth if growth.bin == bin_)


def pods_by_domain(
    problem: PlacementProblem, rule: SpreadTerms, pods_on_node: Mapping[int, int]
) -> dict[int, int]:
    """Return the number of pods in each domain that a rule counts."""
    pods_in, domain_of = dict.fromkeys(rule.domains, 0), problem.topologies[rule.topology]
    for node, pods in pods_on_node.items():
        if domain_of[node] in pods_in:
            pods_in[domain_of[node]] += pods
    return pods_in


def domains_of(
    problem: PlacementProblem, terms: VariantTerms, rule: SpreadTerms, reachable: Iterable[int]
) -> RuleDomains:
    """Return the domains of a variant's rule before any new pod."""
    return RuleDomains(pods=pods_by_domain(problem, rule, bound_pods(terms)), reachable=tuple(reachable))


def orders(
    problem: PlacementProblem, domains: Mapping[int, Mapping[int, Sequence[int]]], replicas: Sequence[int]
) -> Mapping[int, list[int]]:
    """Return in which order domains get one pod more, for each variant with a rule on domains.

    `domains` are those of `bins_by_domain`; `replicas` are about those that each variant will have. The
    largest pods choose first: the domain of whose room the smallest share is taken comes first.
    """
    # A greedy choice: each variant in turn takes what its rule requires in every domain, and the pods that
    # are left go to the domains with most room. Later variants see the room that is taken.
    loads, by_variant = _Loads(problem), {}
    for v in sorted(domains, key=lambda v: (-problem.variants[v].accelerators, v)):
        terms, reachable = problem.variants[v], domains[v]
        rule = terms.spread
        if rule is None:
            continue
        new = max(0, replicas[v] - len(terms.bound_replicas)) * terms.pods
        before = domains_of(problem, terms, rule, reachable)
        pods_in = dict(before.pods)
        for domain, (pods,) in rule.least_new_pods(before, [new]).items():
            loads.add(reachable[domain], terms.accelerators * pods)
            pods_in[domain] += pods
            new -= pods
        shares = {domain: loads.share(bins, terms.accelerators) for domain, bins in reachable.items()}
        by_variant[v] = sorted(reachable, key=lambda domain: (shares[domain], domain))
        can_get_more = rule.open_domains(pods_in)
        takers = [domain for domain in by_variant[v] if domain in can_get_more]
        each, more = divmod(new, max(1, len(takers)))  # a rule may leave most pods open: they come in turn
        for place, domain in enumerate(takers):
            loads.add(reachable[domain], terms.accelerators * (each + (place < more)))
    return by_variant


class _Loads:
    """How much of the room of each bin is taken, in accelerators."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._room = [sum(max(0, problem.free[node]) for node in bin_.nodes) for bin_ in problem.bins]
        for growth in problem.growth:
            self._room[growth.bin] += growth.accelerators * growth.limit
        self._used = [0.0] * len(self._room)

    def add(self, bins: Sequence[int], accelerators: int) -> None:
        """Take accelerators, evenly in some bins."""
        for bin_ in bins:
            self._used[bin_] += accelerators / len(bins)

    def share(self, bins: Sequence[int], accelerators: int) -> float:
        """Return the share of some bins that would be taken with more accelerators."""
        room = sum(self._room[bin_] for bin_ in bins)
        return (sum(self._used[bin_] for bin_ in bins) + accelerators) / room if room else math.inf
