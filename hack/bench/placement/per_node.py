"""The question of `fewest_evictions` as one says it at first: numbers for every node, to CP-SAT."""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from controller.planning.moves import Kind
from hack.bench.placement.fragments import PER_NODE, Fragments


def most_for_least(world: Fragments, wanted: int, *, seconds: float) -> tuple[int, int] | None:
    """Return how many whole nodes find room, and the price; None where the optimum was not proven in time."""
    model = cp_model.CpModel()
    evicted = [
        [model.new_int_var(0, count, "") for count in row] for row in world.movable.tolist()
    ]  # of each kind, on each node
    again = [[model.new_int_var(0, PER_NODE, "") for _ in world.kinds] for _ in evicted]
    placed = [model.new_bool_var("") for _ in evicted]
    for free, out, back, whole in zip(world.free.tolist(), evicted, again, placed, strict=True):
        model.add(_size(world.kinds, back) + PER_NODE * whole <= free + _size(world.kinds, out))
    for kind in range(len(world.kinds)):
        model.add(sum(row[kind] for row in evicted) == sum(row[kind] for row in again))
    model.add(sum(placed) <= wanted)
    price = sum(k.price * n for row in evicted for k, n in zip(world.kinds, row, strict=True))
    worth = 1 + sum(k.price * int(world.movable[:, i].sum()) for i, k in enumerate(world.kinds))
    model.minimize(price - worth * sum(placed))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return sum(solver.value(whole) for whole in placed), int(solver.value(price))


def _size(kinds: Sequence[Kind], counts: Sequence[cp_model.IntVar]) -> cp_model.LinearExpr:
    return cp_model.LinearExpr.weighted_sum(counts, [kind.accelerators for kind in kinds])
