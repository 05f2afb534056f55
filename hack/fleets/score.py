"""The quality of a solution: shortfalls level by level, and cost. An independent second implementation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.planning.problem import CoverRow, PlacementProblem, Stage, level_name

COST: Final = "cost"
_WHOLE: Final = 1000
_PERCENT: Final = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmet:
    """Unmet demand of one priority."""

    priority: int
    by_value_percent: float
    """Shares of demand, weighted by the cost of serving it."""

    by_model_percent: float
    """Shares of demand, equally weighted by model."""

    models: int
    """The number of models with any unmet demand."""


def levels(problem: PlacementProblem, replicas: Sequence[int]) -> dict[str, int]:
    """Return the value of every level, the most important first; cost is the last."""
    missed: dict[tuple[Stage, int], int] = defaultdict(int)
    for row in problem.rows:
        missed[row.level] += row.weight * shortfall(problem, row, replicas)
    named = {level_name(*level): value for level, value in sorted(missed.items())}
    return named | {COST: cost(problem, replicas)}


def cost(problem: PlacementProblem, replicas: Sequence[int]) -> int:
    """Return the cost of the replicas, plus the prices of starting and stopping them."""
    total = 0
    for terms, count in zip(problem.variants, replicas, strict=True):
        started, stopped = max(0, count - terms.current), max(0, terms.current - count)
        total += count * terms.cost + started * terms.start_price + stopped * terms.stop_price
    return total


def unmet(problem: PlacementProblem, replicas: Sequence[int]) -> list[Unmet]:
    """Return the unmet demand of each priority."""
    rows_of: dict[int, list[CoverRow]] = defaultdict(list)
    for row in problem.rows:
        if row.stage is Stage.DEMAND and row.requirement:
            rows_of[row.priority].append(row)
    return [_unmet(problem, replicas, priority, rows) for priority, rows in sorted(rows_of.items())]


def shortfall(problem: PlacementProblem, row: CoverRow, replicas: Sequence[int]) -> int:
    """Return the uncovered per mille of a requirement, rounded up."""
    if not row.requirement:
        return 0
    given = 0
    for v, amount in row.terms:
        given += amount * min(replicas[v], problem.variants[v].most_counted(row.counted))
    return -(-_WHOLE * max(0, row.requirement - given) // row.requirement)


def _unmet(
    problem: PlacementProblem, replicas: Sequence[int], priority: int, rows: Sequence[CoverRow]
) -> Unmet:
    short = [shortfall(problem, row, replicas) for row in rows]
    value = sum(row.weight * missed for row, missed in zip(rows, short, strict=True))
    return Unmet(
        priority=priority,
        by_value_percent=_PERCENT * value / (_WHOLE * sum(row.weight for row in rows)),
        by_model_percent=_PERCENT * sum(short) / (_WHOLE * len(rows)),
        models=sum(missed > 0 for missed in short),
    )
