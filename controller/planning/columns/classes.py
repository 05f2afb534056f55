"""What replicas ask of nodes: a size, the bins they may go to, and who has to go with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import NO_DOMAIN, bins_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.columns.arrays import Integers
    from controller.planning.problem import PlacementProblem, SpreadTerms, VariantTerms

NO_CLASS = -1
"""Of a variant whose replicas need no accelerator."""

NO_VARIANT = -1
"""Of a class that is not one variant's own."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class PlaceClass:
    """Everything in a class is alike to the nodes. In order: what is hardest to place comes last."""

    total: int
    """Accelerators of all pods that go together."""

    size: int
    """Accelerators of each pod."""

    pods: int
    """That go together to one block of nodes; 1 for those that go by themselves."""

    topology: int
    """Whose domains are the blocks; NO_DOMAIN where pods go by themselves."""

    bins: tuple[int, ...]

    alone: int
    """The only variant of the class, where few of its pods may share a node; NO_VARIANT for any."""


def classes_of(
    problem: PlacementProblem,
) -> tuple[list[PlaceClass], Integers, Mapping[int, tuple[int, ...]]]:
    """Return the classes, the class of each variant, and the one in each domain of those that spread."""
    known: dict[tuple[object, ...], PlaceClass] = {}

    def kind(variant: int, where: tuple[int, ...]) -> PlaceClass:
        terms = problem.variants[variant]
        alone = NO_VARIANT if terms.most_per_node is None else variant
        looks = (terms.accelerators, terms.pods, terms.together, alone, where)
        return known.get(looks) or known.setdefault(looks, _class(terms, alone, where))

    kinds: list[PlaceClass | None] = []
    spread: dict[int, list[PlaceClass]] = {}
    for variant, (terms, bins) in enumerate(zip(problem.variants, bins_of(problem), strict=True)):
        kinds.append(kind(variant, tuple(bins)) if terms.accelerators else None)
        if terms.spread and terms.spread.domains and terms.accelerators:
            domains = [_domain_of(problem, bin_, terms.spread) for bin_ in bins]
            spread[variant] = [
                kind(variant, tuple(b for b, there in zip(bins, domains, strict=True) if there == domain))
                for domain in terms.spread.domains
            ]
    classes = sorted(known.values())
    number = {kind: index for index, kind in enumerate(classes)}
    class_of = np.array([number[kind] if kind else NO_CLASS for kind in kinds], dtype=np.int64)
    return classes, class_of, {v: tuple(number[kind] for kind in own) for v, own in spread.items()}


def _class(terms: VariantTerms, alone: int, where: tuple[int, ...]) -> PlaceClass:
    pods = 1 if terms.together is None else terms.pods
    return PlaceClass(
        total=pods * terms.accelerators,
        size=terms.accelerators,
        pods=pods,
        topology=NO_DOMAIN if terms.together is None else terms.together,
        bins=where,
        alone=alone,
    )


def _domain_of(problem: PlacementProblem, bin_: int, spread: SpreadTerms) -> int:
    """Return the domain that all nodes of a bin are in."""
    nodes = problem.bins[bin_].nodes
    if nodes:
        return problem.topologies[spread.topology][nodes[0]]
    return next(growth.domains[spread.topology] for growth in problem.growth if growth.bin == bin_)
