"""Reject problems whose sums are too large to be compared exactly, before solving."""

from __future__ import annotations

from operator import itemgetter

from controller.planning.problem import (
    EXACT_LIMIT,
    PER_MILLE,
    GrowthTerms,
    NumbersTooLargeError,
    PlacementProblem,
    VariantTerms,
)


def check_magnitude(problem: PlacementProblem) -> None:
    """Check that all sums of a problem are exact in double precision.

    Raises NumbersTooLargeError, naming the largest contributor and a remedy.
    """
    upper = [terms.upper for terms in problem.variants]
    for row in problem.rows:
        reach = PER_MILLE * (row.requirement + sum(amount * upper[v] for v, amount in row.terms))
        if reach >= EXACT_LIMIT:
            raise NumbersTooLargeError(
                f"{row.name}: requirement and capacities sum up to {reach:.3g} per mille"
            )
    for largest in dearest(problem)[:1]:
        if isinstance(largest, GrowthTerms):
            what, remedy = f"price of up to {largest.limit} nodes", "price"
        else:
            what, remedy = f"cost of up to {largest.upper} replicas", "cost"
        raise NumbersTooLargeError(
            f"{largest.name}: the {what} is too large to compare exactly; lower its {remedy} or its maximum"
        )


def dearest(problem: PlacementProblem) -> list[VariantTerms | GrowthTerms]:
    """Return the variants and nodes to be added whose prices make the sum of all inexact, the largest first.

    Without them, the sum is exact. Usually there are none.
    """
    # Replicas stop from the current number, even if there are fewer pods.
    priced: list[tuple[int, VariantTerms | GrowthTerms]] = [
        ((terms.cost + terms.start_price) * terms.upper + terms.stop_price * terms.current, terms)
        for terms in problem.variants
    ]
    priced += [(growth.price * growth.limit, growth) for growth in problem.growth]
    total = sum(price for price, _ in priced)
    dearest_terms: list[VariantTerms | GrowthTerms] = []
    for price, terms in sorted(priced, key=itemgetter(0), reverse=True):
        if total < EXACT_LIMIT:
            break
        dearest_terms.append(terms)
        total -= price
    return dearest_terms
