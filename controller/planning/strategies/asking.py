"""The problem as an autoscaler of models sees it: who asks for how much, of which variants."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.problem import CoverRow, PlacementProblem


class Want(NamedTuple):
    """A requirement that several variants can share."""

    requirement: int
    amounts: Mapping[int, int]
    """Of each variant that helps, per replica."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """One model that wants something."""

    name: str
    """That of its first variant: what else is equal goes by name."""

    priority: int
    variants: tuple[int, ...]
    demands: tuple[Want, ...]
    """Required capacity, by any of its variants; by none where no capacity is known."""

    warmth: tuple[Want, ...]
    """Replicas to keep, of any of its variants."""

    floors: Mapping[int, int]
    """Replicas of a variant of its own that are wanted whatever the model needs; 0 is left out."""

    @property
    def wanted(self) -> tuple[Want, ...]:
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


def missing(want: Want, replicas: Sequence[int]) -> int:
    """Return what of a requirement is not provided; negative is to spare."""
    lacking = want.requirement
    for v, amount in want.amounts.items():
        lacking -= amount * replicas[v]
    return lacking


def floors(problem: PlacementProblem, models: Sequence[Asking]) -> list[int]:
    """Return the replicas of each variant that are there whatever is decided."""
    least = [terms.lower for terms in problem.variants]
    for model in models:
        for v, count in model.floors.items():
            least[v] = max(least[v], min(count, problem.variants[v].upper))
    return least


def _asking(problem: PlacementProblem, rows: Sequence[CoverRow]) -> Asking:
    variants = tuple(sorted({v for row in rows for v, _ in row.terms}))
    shared: dict[Stage, list[Want]] = {Stage.DEMAND: [], Stage.MINIMUM: []}
    own: dict[int, int] = {}
    for row in rows:
        if len(row.terms) == 1 < len(variants):
            ((v, amount),) = row.terms
            own[v] = max(own.get(v, 0), -(-row.requirement // amount))
        else:
            shared[row.stage].append(Want(row.requirement, dict(row.terms)))
    return Asking(
        name=problem.variants[variants[0]].name,
        priority=min([row.priority for row in rows]),
        variants=variants,
        demands=tuple(shared[Stage.DEMAND]),
        warmth=tuple(shared[Stage.MINIMUM]),
        floors=own,
    )
