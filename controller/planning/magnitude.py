"""Reject problems whose sums are too large to be compared exactly, before solving."""

from __future__ import annotations

from controller.planning.problem import EXACT_LIMIT, PER_MILLE, NumbersTooLargeError, PlacementProblem


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
    prices = [(t.cost + t.start_price + t.stop_price) * t.upper for t in problem.variants]
    nodes = [growth.price * growth.limit for growth in problem.growth]
    if sum(nodes) >= EXACT_LIMIT:
        dearest_node = problem.growth[nodes.index(max(nodes))]
        raise NumbersTooLargeError(
            f"{dearest_node.name}: the price of up to {dearest_node.limit} nodes is too large to compare "
            "exactly; lower its price or its maximum"
        )
    if sum(prices) >= EXACT_LIMIT:
        dearest = problem.variants[prices.index(max(prices))]
        raise NumbersTooLargeError(
            f"{dearest.name}: the cost of up to {dearest.upper} replicas is too large to compare exactly; "
            "lower its cost or its maximum"
        )
