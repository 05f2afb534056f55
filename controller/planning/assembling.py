"""Assemble the published plan from an answer: explanations, placements, cost and nodes to add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.decision import NodePlacement, NodeRequest, Plan
from controller.planning.explain import decisions
from controller.planning.verdict import total_cost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.answer import Answer
    from controller.planning.decision import Move, SolverReport
    from controller.planning.snapshot import Variant


def assembled(answer: Answer, solver: SolverReport, moves: tuple[Move, ...] = ()) -> Plan:
    """Return the plan for an answer, with the solver's report and the evictions to make."""
    variants = answer.variants
    made = decisions(answer)
    return Plan(
        decisions=made,
        placements=tuple(
            NodePlacement(
                namespace=variants[v].namespace,
                name=variants[v].name,
                node=answer.nodes[node].name,
                pods=count,
            )
            for v, node, count in answer.granted.placements
        ),
        cost=total_cost(made, variants),
        solver=solver,
        requests=tuple(_requests(answer, variants)),
        moves=moves,
    )


def _requests(answer: Answer, variants: Sequence[Variant]) -> Iterator[NodeRequest]:
    """Yield the nodes requested from each node pool."""
    pools = {pool.name: pool for pool in answer.snapshot.pools}
    for index, nodes in enumerate(answer.granted.added):
        if nodes:
            pool = pools[answer.problem.growth[index].name]
            yield NodeRequest(
                pool=pool.name,
                nodes=nodes,
                price_per_hour=nodes * pool.price_per_node,
                lead_seconds=pool.lead_seconds,
                pods=tuple(
                    (variants[v].namespace, variants[v].name, count)
                    for v, growth, count in answer.granted.grown
                    if growth == index
                ),
            )
