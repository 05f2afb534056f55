"""The number of evictions that make room in fragmented clusters, and the CPU time to find them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.planning.moves import Evictions, fewest_evictions
from hack.bench.goals import Goal, short_number
from hack.bench.placement.engines import effort_within
from hack.bench.placement.fragments import PER_NODE, ScoringStrategy, fragments
from hack.bench.table import Columns, group_by, mean_of, table_lines

NODES: Final = (10, 100, 2000)
USED_PERCENT: Final = (60, 80, 95)
FAMILIES: Final = {f"F8-{strategy}": (strategy, False) for strategy in ScoringStrategy} | {
    f"F10-{strategy}": (strategy, True) for strategy in ScoringStrategy
}
"""The scheduler's strategy, and whether evictions have the prices of several classes, by family."""

_UNLIMITED: Final = 10**6
_LARGE: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveFigures:
    """The result for one cluster."""

    family: str
    nodes: int
    used_percent: int
    nodes_to_free: int
    """The number of replicas of a whole node each; half of the free accelerators would be enough for them."""
    placed_before: int
    placed: int
    evictions: int
    price: int
    is_proven: bool
    cpu_ms: tuple[float, ...]


def measure_moves(family: str, nodes: int, used_percent: int, *, rounds: int, seconds: float) -> MoveFigures:
    """Measure one cluster; `seconds` is the wall-clock limit of each solve."""
    strategy, has_classes = FAMILIES[family]
    world = fragments(nodes=nodes, used_percent=used_percent, strategy=strategy, has_classes=has_classes)

    def find() -> Evictions:
        pods, most = {PER_NODE: world.nodes_to_free}, _UNLIMITED
        return fewest_evictions(
            world.free, world.movable, world.kinds, pods, most=most, effort=effort_within(seconds=seconds)
        )

    runs = [_time(find) for _ in range(rounds)]
    best = runs[0][1]
    price = sum(count * world.kinds[kind].price for _, kind, count in best.evicted)
    return MoveFigures(
        family=family,
        nodes=nodes,
        used_percent=used_percent,
        nodes_to_free=world.nodes_to_free,
        placed_before=min(world.nodes_to_free, world.whole),
        placed=best.placed[PER_NODE],
        evictions=sum(count for *_, count in best.evicted),
        price=price,
        is_proven=best.is_proven,
        cpu_ms=tuple(ms for ms, _ in runs),
    )


def moving_goals(results: Sequence[MoveFigures], *, slowness: float) -> Iterator[Goal]:
    """Yield the goals of large clusters, at the pace of the machine on which they were set."""
    large = [one for one in results if one.nodes == _LARGE and one.family.startswith("F8")]
    if large:
        spent = max(statistics.median(one.cpu_ms) for one in large) / slowness
        yield Goal(name=f"T4_evictions_in_{_LARGE}_nodes", value=spent, unit="ms", most=10.0)
        share = 100 * sum(not one.is_proven for one in large) / len(large)
        yield Goal(name=f"T4_evictions_not_proven_in_{_LARGE}_nodes", value=share, unit="%", most=0.0)


def _time(find: Callable[[], Evictions]) -> tuple[float, Evictions]:
    began = time.process_time()
    value = find()
    return (time.process_time() - began) * 1000, value


def _without_room(placed: Callable[[MoveFigures], int]) -> Callable[[Sequence[MoveFigures]], str]:
    return lambda group: short_number(
        100 * (1 - sum(map(placed, group)) / sum(one.nodes_to_free for one in group))
    )


_COLUMNS: Final[Columns[Sequence[MoveFigures]]] = (
    ("fragmented", lambda group: group[0].family),
    ("nodes", lambda group: str(group[0].nodes)),
    ("used %", lambda group: str(group[0].used_percent)),
    ("wanted", mean_of(lambda one: one.nodes_to_free)),
    ("without room %", _without_room(lambda one: one.placed_before)),
    ("after moves %", _without_room(lambda one: one.placed)),
    ("evictions", mean_of(lambda one: one.evictions)),
    ("price", mean_of(lambda one: one.price)),
    ("proven", lambda group: f"{sum(one.is_proven for one in group)}/{len(group)}"),
    ("CPU ms", mean_of(lambda one: statistics.median(one.cpu_ms))),
)


def moving_table(results: Sequence[MoveFigures]) -> list[str]:
    """Return the lines of the table, one per family, size and utilization."""
    return table_lines(_COLUMNS, group_by(results, lambda one: (one.family, one.nodes, one.used_percent)))
