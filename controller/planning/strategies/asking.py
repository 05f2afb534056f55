"""The problem as an autoscaler of models sees it: who asks for how much, of which variants."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import CoverRow, PlacementProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """One model that wants something."""

    name: str
    """That of its first variant: what else is equal goes by name."""

    priority: int
    variants: tuple[int, ...]
    demands: tuple[CoverRow, ...]
    """Required capacity, by any of its variants; by none where no capacity is known."""

    warmth: tuple[CoverRow, ...]
    """Replicas to keep, of any of its variants."""

    floors: dict[int, int]
    """Replicas of a variant of its own that are wanted whatever the model needs; 0 is left out."""

    @property
    def wanted(self) -> tuple[CoverRow, ...]:
        """All that the variants can share."""
        return (*self.warmth, *self.demands)


def askings(problem: PlacementProblem) -> list[Asking]:
    """Return the models that want anything of a variant, by name; none here knows of continuity."""
    rows_of: dict[int, list[CoverRow]] = defaultdict(list)
    for row in problem.rows:
        if row.stage is not Stage.CONTINUITY:
            rows_of[row.model].append(row)
    found = [_asking(problem, rows) for rows in rows_of.values() if any(row.terms for row in rows)]
    return sorted(found, key=lambda asking: asking.name)


def missing(row: CoverRow, replicas: Sequence[int]) -> int:
    """Return what of a requirement is not provided; negative is to spare."""
    return row.requirement - sum(amount * replicas[v] for v, amount in row.terms)


def enough(row: CoverRow, variant: int, lacking: int) -> int | None:
    """Return how many replicas of a variant provide what is lacking, or None when it can't."""
    amount = dict(row.terms).get(variant)
    return max(0, -(-lacking // amount)) if amount else None


def floors(problem: PlacementProblem, models: Sequence[Asking]) -> list[int]:
    """Return the replicas of each variant that are there whatever is decided."""
    least = [terms.lower for terms in problem.variants]
    for model in models:
        for v, count in model.floors.items():
            least[v] = max(least[v], min(count, problem.variants[v].upper))
    return least


def _asking(problem: PlacementProblem, rows: Sequence[CoverRow]) -> Asking:
    variants = tuple(sorted({v for row in rows for v, _ in row.terms}))
    single = [row for row in rows if len(row.terms) == 1 < len(variants)]
    shared = [row for row in rows if row not in single]
    own: dict[int, int] = {}
    for row in single:
        ((v, amount),) = row.terms
        own[v] = max(own.get(v, 0), -(-row.requirement // amount))
    return Asking(
        name=problem.variants[variants[0]].name,
        priority=min(row.priority for row in rows),
        variants=variants,
        demands=tuple(row for row in shared if row.stage is Stage.DEMAND),
        warmth=tuple(row for row in shared if row.stage is Stage.MINIMUM),
        floors=own,
    )
