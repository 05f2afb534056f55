"""Assemble the published plan from a solved problem: explanations, placements, cost and nodes to add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.decision import NodePlacement, NodeRequest, Plan
from controller.planning.explain import decisions
from controller.planning.verdict import total_cost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.decision import Move, SolverReport
    from controller.planning.snapshot import Variant
    from controller.planning.solved_problem import SolvedProblem


def assembled(solved: SolvedProblem, solver: SolverReport, moves: tuple[Move, ...] = ()) -> Plan:
    """Return the plan for a solved problem, with the solver's report and the evictions to make."""
    variants = solved.variants
    made = decisions(solved)
    return Plan(
        decisions=made,
        placements=tuple(
            NodePlacement(
                namespace=variants[v].namespace,
                name=variants[v].name,
                node=solved.nodes[node].name,
                pods=count,
            )
            for v, node, count in solved.granted.placements
        ),
        cost=total_cost(made, variants),
        solver=solver,
        requests=tuple(_requests(solved, variants)),
        moves=moves,
    )


def _requests(solved: SolvedProblem, variants: Sequence[Variant]) -> Iterator[NodeRequest]:
    """Yield the nodes requested from each node pool."""
    pools = {pool.name: pool for pool in solved.snapshot.pools}
    for index, nodes in enumerate(solved.granted.added):
        if nodes:
            pool = pools[solved.problem.growth[index].name]
            yield NodeRequest(
                pool=pool.name,
                nodes=nodes,
                price_per_hour=nodes * pool.price_per_node,
                lead_seconds=pool.lead_seconds,
                pods=tuple(
                    (variants[v].namespace, variants[v].name, count)
                    for v, growth, count in solved.granted.grown
                    if growth == index
                ),
            )
