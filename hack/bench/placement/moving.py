"""The number of evictions that make room in fragmented clusters, and the CPU time to find them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ortools.sat.python import cp_model

from controller.planning.moves import Evictions, MovableKind, fewest_evictions
from hack.bench.goals import Goal, short_number
from hack.bench.placement.engines import effort_within
from hack.bench.placement.fragments import PER_NODE, Fragments, ScoringStrategy, fragments
from hack.bench.table import Columns, group_by, mean_of, table_lines

NODES: Final = (10, 100, 1000, 10_000, 20_000)
USED_PERCENT: Final = (60, 80, 95)
FAMILIES: Final = {f"F8-{strategy}": (strategy, False) for strategy in ScoringStrategy} | {
    f"F10-{strategy}": (strategy, True) for strategy in ScoringStrategy
}
"""The scheduler's strategy, and whether evictions have the prices of several classes, by family."""

MOST_PER_NODE: Final = 100
"""Number of nodes up to which the model with variables for every node is solved."""

_UNLIMITED: Final = 10**6
_LARGE: Final = 10_000

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Moving:
    """The result for one cluster."""

    family: str
    nodes: int
    used_percent: int
    seed: int
    wanted: int
    """The number of replicas of a whole node each; half of the free accelerators would be enough for them."""
    placed_before: int
    placed: int
    evictions: int
    price: int
    is_proven: bool
    cpu_ms: tuple[float, ...]
    per_node_ms: float | None = None
    """CPU time of CP-SAT with variables for every node; None if not tried, or not proven optimal in time."""
    disagrees: bool = False
    """Whether that model has another optimum."""


def moved(family: str, nodes: int, used_percent: int, *, seed: int, rounds: int, seconds: float) -> Moving:
    """Measure one cluster; `seconds` is the wall-clock limit of each solve."""
    strategy, has_classes = FAMILIES[family]
    world = fragments(
        nodes=nodes, used_percent=used_percent, strategy=strategy, has_classes=has_classes, seed=seed
    )

    def find() -> Evictions:
        wanted, most = {PER_NODE: world.wanted}, _UNLIMITED
        return fewest_evictions(
            world.free, world.movable, world.kinds, wanted, most=most, effort=effort_within(seconds=seconds)
        )

    runs = [_time(find) for _ in range(rounds)]
    best = runs[0][1]
    price = sum(count * world.kinds[kind].price for _, kind, count in best.evicted)
    per_node_ms, answer = None, None
    if nodes <= MOST_PER_NODE:
        spent, answer = _time(lambda: most_for_least(world, world.wanted, seconds=seconds))
        per_node_ms = spent if answer else None
    return Moving(
        family=family,
        nodes=nodes,
        used_percent=used_percent,
        seed=seed,
        wanted=world.wanted,
        placed_before=min(world.wanted, world.whole),
        placed=best.placed[PER_NODE],
        evictions=sum(count for *_, count in best.evicted),
        price=price,
        is_proven=best.is_proven,
        cpu_ms=tuple(ms for ms, _ in runs),
        per_node_ms=per_node_ms,
        disagrees=answer is not None and best.is_proven and answer != (best.placed[PER_NODE], price),
    )


def moving_goals(results: Sequence[Moving], *, slowness: float) -> Iterator[Goal]:
    """Yield the goals of large clusters, at the pace of the machine on which they were set."""
    large = [one for one in results if one.nodes == _LARGE and one.family.startswith("F8")]
    if large:
        spent = max(statistics.median(one.cpu_ms) for one in large) / slowness
        yield Goal(name=f"T4_evictions_in_{_LARGE}_nodes", value=spent, unit="ms", most=10.0)
        share = 100 * sum(not one.is_proven for one in large) / len(large)
        yield Goal(name=f"T4_evictions_not_proven_in_{_LARGE}_nodes", value=share, unit="%", most=0.0)
    if any(one.per_node_ms is not None for one in results):
        wrong = sum(one.disagrees for one in results)
        yield Goal(name="evictions_another_model_disproves", value=wrong, unit="clusters", most=0)


def _time(find: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    value = find()
    return (time.process_time() - began) * 1000, value


def most_for_least(world: Fragments, wanted: int, *, seconds: float) -> tuple[int, int] | None:
    """Solve the same problem with CP-SAT in its direct formulation, with variables for every node.

    Return the number of whole nodes that become free, and the price; None if not proven optimal in time.
    """
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


def _size(kinds: Sequence[MovableKind], counts: Sequence[cp_model.IntVar]) -> cp_model.LinearExpr:
    return cp_model.LinearExpr.weighted_sum(counts, [kind.accelerators for kind in kinds])


def _without_room(placed: Callable[[Moving], int]) -> Callable[[Sequence[Moving]], str]:
    return lambda group: short_number(100 * (1 - sum(map(placed, group)) / sum(one.wanted for one in group)))


_COLUMNS: Final[Columns[Sequence[Moving]]] = (
    ("fragmented", lambda group: group[0].family),
    ("nodes", lambda group: str(group[0].nodes)),
    ("used %", lambda group: str(group[0].used_percent)),
    ("wanted", mean_of(lambda one: one.wanted)),
    ("without room %", _without_room(lambda one: one.placed_before)),
    ("after moves %", _without_room(lambda one: one.placed)),
    ("evictions", mean_of(lambda one: one.evictions)),
    ("price", mean_of(lambda one: one.price)),
    ("proven", lambda group: f"{sum(one.is_proven for one in group)}/{len(group)}"),
    ("CPU ms", mean_of(lambda one: statistics.median(one.cpu_ms))),
    ("per node ms", mean_of(lambda one: one.per_node_ms)),
)


def moving_table(results: Sequence[Moving]) -> list[str]:
    """Return the lines of the table, one per family, size and utilization, with means over the seeds."""
    return table_lines(_COLUMNS, group_by(results, lambda one: (one.family, one.nodes, one.used_percent)))
