"""Demands on nodes: new units in the domains that rules allow, aggregated by equal needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.planning.cpsat import Program, Terms
from controller.planning.engine.rules import bins_by_domain, domains_of, orders
from controller.planning.engine.shared import item_type
from controller.planning.pod_rules import NewUnits
from controller.planning.problem import PlacementProblem, bins_of

MOST_DOMAIN_CHOICES = 2000
"""Number of domains, over all variants, up to which the solver chooses those that get one pod more."""


@dataclass(frozen=True, kw_only=True)
class Demand:
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

    parts: tuple[tuple[int, NewReplicas], ...]
    """The units of each variant."""

    @property
    def units(self) -> Terms:
        """The number of units, as a sum of variables."""
        return [term for _, part in self.parts for term in part.terms]

    @property
    def most(self) -> int:
        """Upper bound on the number of units."""
        return sum(part.most for _, part in self.parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewReplicas:
    """Replicas of a variant that need places, or units of them."""

    terms: Terms
    """Their number, as a sum of variables."""

    most: int
    """Upper bound on their number."""


def demands_of(
    program: Program,
    problem: PlacementProblem,
    new: Mapping[int, NewReplicas],
    *,
    likely: Sequence[int] | None,
) -> tuple[list[Demand], bool]:
    """Return the demands on nodes; add the rows of rules on domains.

    The second value tells whether the domains that get one pod more are fixed. This is done if there are too
    many to choose from, and only if the `likely` number of replicas of each variant is given.
    """
    alike: dict[tuple[int, int, int, tuple[int, ...], int], list[tuple[int, NewReplicas]]] = defaultdict(list)
    domains = bins_by_domain(problem)
    bins = bins_of(problem)
    choices = sum(len(domains[v]) for v in new if v in domains)
    fixes_domains = likely is not None and choices > MOST_DOMAIN_CHOICES
    in_order = orders(problem, domains, likely) if likely is not None and fixes_domains else {}
    for v, replicas in sorted(new.items()):
        terms = problem.variants[v]
        if not terms.accelerators or not replicas.terms:
            continue
        own = v if terms.node_rules else -1
        kind = item_type(terms, ())
        key = kind.accelerators, kind.pods, kind.topology
        each = terms.pods // kind.pods
        units = NewUnits(
            terms=[(variable, weight * each) for variable, weight in replicas.terms],
            most=replicas.most * each,
            pods=kind.pods,
            order=in_order.get(v),
        )
        rule = terms.domain_rule
        if rule is None:
            alike[*key, tuple(bins[v]), own].append((v, NewReplicas(terms=units.terms, most=units.most)))
            continue
        reachable = domains[v]
        before = domains_of(problem, terms, rule, reachable)
        # Options have this limit already; replica counts that were not made of options may not.
        most = rule.most_new_pods(before)
        if most is not None and units.most * units.pods > most:
            program.row(units.terms, most=most // units.pods)
        for domain, part in rule.parts(program, units, before).items():
            here = NewReplicas(terms=part, most=units.most)
            alike[*key, reachable[domain], own].append((v, here))
    demands = [
        Demand(accelerators=size, pods=pods, topology=topology, bins=where, variant=own, parts=tuple(parts))
        for (size, pods, topology, where, own), parts in sorted(alike.items(), key=lambda item: item[0])
    ]
    return demands, fixes_domains
