"""What is asked of nodes: new units in the domains that spreading allows, summed up where they are alike."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.engine import spread
from controller.planning.engine.shared import item_type
from controller.planning.problem import bins_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.cpsat import Program, Terms
    from controller.planning.problem import PlacementProblem

MOST_DOMAIN_CHOICES = 2000
"""Up to how many domains of all variants together the solver chooses which get one pod more than others."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """New units of one kind: of a variant with rules of its own, or of all variants with the same needs."""

    accelerators: int
    """Of each pod."""

    pods: int
    """Pods of one unit, which go together into one block; 1 for pods that go by themselves."""

    topology: int
    """The topology whose domains are the blocks; NO_DOMAIN for pods that go by themselves."""

    bins: tuple[int, ...]
    """Where the units may go."""

    variant: int
    """The variant where it limits its pods on one node; -1 elsewhere."""

    units: Terms
    """How many units there are, as a sum of variables."""

    most: int
    """How many units there can be at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewReplicas:
    """Replicas of a variant that need places, or units of them."""

    terms: Terms
    """How many there are, as a sum of variables."""

    most: int
    """How many there can be at most."""


def demands_of(
    program: Program, problem: PlacementProblem, new: Mapping[int, NewReplicas], *, may_fix_domains: bool
) -> tuple[list[Demand], list[list[tuple[int, NewReplicas]]], bool]:
    """Return what is asked of nodes, and of it the units of each variant; add the rows of spreading.

    Also tells whether it is fixed which domains get one pod more than others, which is done only where there
    are many to choose, and only if that is allowed.
    """
    alike: dict[tuple[int, int, int, tuple[int, ...], int], list[tuple[int, NewReplicas]]] = defaultdict(list)
    domains = spread.bins_by_domain(problem)
    bins = bins_of(problem)
    choices = sum(len(domains[v]) for v in new if v in domains)
    fixes_domains = may_fix_domains and choices > MOST_DOMAIN_CHOICES
    for v, replicas in sorted(new.items()):
        terms = problem.variants[v]
        if not terms.accelerators or not replicas.terms:
            continue
        own = v if terms.most_per_node is not None else -1
        kind = item_type(terms, ())
        looks = kind.accelerators, kind.pods, kind.topology
        each = terms.pods // kind.pods
        units = NewReplicas(
            terms=[(variable, weight * each) for variable, weight in replicas.terms],
            most=replicas.most * each,
        )
        if terms.spread is None:
            alike[*looks, tuple(bins[v]), own].append((v, units))
            continue
        reachable = domains[v]
        counts = spread.lying(problem, terms)
        if terms.spread.max_skew == 1 and kind.pods == 1:
            first = v if fixes_domains else None
            parts = spread.spread_evenly(program, counts, reachable, units.terms, first)
        else:
            parts = spread.spread_within(
                program, terms.spread, counts, reachable, new=units.terms, most=units.most, pods=kind.pods
            )
        for domain, part in parts.items():
            here = NewReplicas(terms=part, most=units.most)
            alike[*looks, reachable[domain], own].append((v, here))
    found = sorted(alike.items(), key=lambda item: item[0])
    demands = [
        Demand(
            accelerators=size,
            pods=pods,
            topology=topology,
            bins=where,
            variant=own,
            units=[term for _, each in asked for term in each.terms],
            most=sum(each.most for _, each in asked),
        )
        for (size, pods, topology, where, own), asked in found
    ]
    return demands, [asked for _, asked in found], fixes_domains
