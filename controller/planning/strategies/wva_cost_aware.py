"""From what runs now, as the workload-variant autoscaler's cost-aware optimizer and its limiter decide.

Each model alone: what is missing goes to the variant with the least cost per capacity, what is to spare is
taken from the dearest. The limiter then grants scale-ups from the accelerators left of each kind, to whoever
has least to spare first; priorities and other variants are not known to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.problem import PER_MILLE
from controller.planning.strategies.asking import Asking, askings, floors, missing
from controller.planning.strategies.granting import by_priority, granted, pending
from controller.planning.strategies.pools import Pools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import CoverRow, PlacementProblem, Solution


def place(problem: PlacementProblem) -> Solution:
    """Return the plan as far as limits and nodes allow."""
    return granted(problem, counts(problem), by_priority(problem))


def pending_accelerators(problem: PlacementProblem) -> int:
    """Return how many accelerators the counts ask for and no node has."""
    return pending(problem, counts(problem), by_priority(problem))


def counts(problem: PlacementProblem) -> tuple[int, ...]:
    """Return the replicas of each variant, by the number of accelerators of each kind only."""
    models = askings(problem)
    least = floors(problem, models)
    running = [max(t.lower, min(t.current, t.upper)) for t in problem.variants]
    targets = list(least)
    for model in models:
        for v in model.variants:
            targets[v] = running[v]
        _decide(problem, model, targets, least)
    return tuple(_limited(problem, models, running, targets))


def _decide(problem: PlacementProblem, model: Asking, targets: list[int], least: Sequence[int]) -> None:
    """Change the targets of one model's variants."""
    for row in model.demands:
        _scale_up(problem, row, targets)
    if all(missing(row, targets) <= 0 for row in model.demands):
        _scale_down(problem, model, targets, least)
    for v in model.variants:
        targets[v] = max(targets[v], least[v])
    for row in model.warmth:
        v = min((v for v, _ in row.terms), key=lambda v: (problem.variants[v].cost, v))
        targets[v] = max(targets[v], min(targets[v] + missing(row, targets), problem.variants[v].upper))


def _scale_up(problem: PlacementProblem, row: CoverRow, targets: list[int]) -> None:
    """Add what is missing where capacity costs least; to the next variant only what a maximum leaves over."""
    for v, amount in sorted(row.terms, key=lambda term: (problem.variants[term[0]].cost / term[1], term[0])):
        lacking = missing(row, targets)
        targets[v] += min(max(0, -(-lacking // amount)), problem.variants[v].upper - targets[v])


def _scale_down(problem: PlacementProblem, model: Asking, targets: list[int], least: Sequence[int]) -> None:
    """Remove whole replicas from the dearest variant on; the last one left is the cheapest."""
    spare = {row: -missing(row, targets) for row in model.demands}
    cheapest = _cheapest(problem, model)
    for v in sorted(model.variants, key=lambda v: (-problem.variants[v].cost, v)):
        amounts = {row: dict(row.terms).get(v, 0) for row in model.demands}
        keep = least[v]
        if v == cheapest:
            keep = max([keep, *(missing(row, targets) + targets[v] for row in model.warmth)])
        most = [spare[row] // amount for row, amount in amounts.items() if amount]
        count = max(0, min([targets[v] - keep, *most]))
        targets[v] -= count
        for row, amount in amounts.items():
            spare[row] -= count * amount


def _cheapest(problem: PlacementProblem, model: Asking) -> int:
    return min(model.variants, key=lambda v: (problem.variants[v].cost, v))


def _limited(
    problem: PlacementProblem, models: Sequence[Asking], running: Sequence[int], targets: Sequence[int]
) -> list[int]:
    """Return the targets, scale-ups clipped; what is scaled down now is free for others only next time."""
    pools = Pools(problem)
    pools.take_all(running)
    spare_of = {v: _spare(model, running) for model in models for v in model.variants}
    ups = [v for v, target in enumerate(targets) if target > running[v]]
    result = list(targets)
    for v in sorted(
        ups, key=lambda v: (spare_of.get(v, 0), problem.variants[v].cost, problem.variants[v].name)
    ):
        result[v] = running[v] + pools.take(v, targets[v] - running[v])
    return result


def _spare(model: Asking, running: Sequence[int]) -> int:
    """Return what the model has beyond its demand, per mille of it; negative when it has too little."""
    return min((-missing(row, running) * PER_MILLE // row.requirement for row in model.demands), default=0)
