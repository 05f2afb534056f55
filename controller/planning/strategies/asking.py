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

    def lacking(self, replicas: Sequence[int]) -> list[tuple[Mapping[int, int], int]]:
        """Return (amounts, what is missing) of all that the variants can share and that is not met."""
        return [
            (want.amounts, lack)
            for some in (self.warmth, self.demands)
            for want in some
            if (lack := missing(want, replicas)) > 0
        ]


def askings(problem: PlacementProblem) -> list[Asking]:
    """Return the models that want anything of a variant, by name; none here knows of continuity."""
    rows_of: dict[int, list[CoverRow]] = defaultdict(list)
    continuity = Stage.CONTINUITY
    for row in problem.rows:
        if row.stage is not continuity:
            rows_of[row.model].append(row)
    found = [_asking(problem, variants, rows) for rows in rows_of.values() if (variants := _named_in(rows))]
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


def _named_in(rows: Sequence[CoverRow]) -> tuple[int, ...]:
    """Return the variants of any of these rows."""
    return tuple(sorted({v for row in rows for v, _ in row.terms}))


def _asking(problem: PlacementProblem, variants: tuple[int, ...], rows: Sequence[CoverRow]) -> Asking:
    demands: list[Want] = []
    warmth: list[Want] = []
    own: dict[int, int] = {}
    for row in rows:
        if len(row.terms) == 1 < len(variants):
            ((v, amount),) = row.terms
            own[v] = max(own.get(v, 0), -(-row.requirement // amount))
        else:
            (demands if row.stage is Stage.DEMAND else warmth).append(Want(row.requirement, dict(row.terms)))
    return Asking(
        name=problem.variants[variants[0]].name,
        priority=min([row.priority for row in rows]),
        variants=variants,
        demands=tuple(demands),
        warmth=tuple(warmth),
        floors=own,
    )
