"""The problem as an autoscaler of models sees it: who asks for how much, of which variants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from controller.planning.problem import CoverRow, PlacementProblem, Stage

Want = tuple[int, Mapping[int, int]]
"""A requirement, and what a replica of each variant that helps provides of it."""


class Asking(NamedTuple):
    """One model that wants something."""

    name: str
    """That of its first variant: what else is equal goes by name."""

    priority: int
    variants: tuple[int, ...]
    demands: Sequence[Want]
    """Required capacity, by any of its variants; by none where no capacity is known."""

    warmth: Sequence[Want]
    """Replicas to keep, of any of its variants."""

    floors: Mapping[int, int]
    """Replicas of a variant of its own that are wanted whatever the model needs; 0 is left out."""


def askings(problem: PlacementProblem) -> list[Asking]:
    """Return the models that want anything of a variant, by name; none here knows of continuity."""
    rows_of: dict[int, list[CoverRow]] = defaultdict(list)
    continuity = Stage.CONTINUITY
    for row in problem.rows:
        if row.stage is not continuity:
            rows_of[row.model].append(row)
    found = [made for rows in rows_of.values() if (made := _asking(problem, rows))]
    return sorted(found, key=lambda asking: asking.name)


def lacking(models: Sequence[Asking], replicas: Sequence[int]) -> list[list[Want]]:
    """Return what is left of all that each model's variants can share, when there are some replicas."""
    some = {v for v, count in enumerate(replicas) if count}
    found = []
    for model in models:
        wants = [*model.warmth, *model.demands]
        if not some.isdisjoint(model.variants):
            wants = [(missing(want, replicas), want[1]) for want in wants]
        found.append([want for want in wants if want[0] > 0])
    return found


def missing(want: Want, replicas: Sequence[int]) -> int:
    """Return what of a requirement is not provided; negative is to spare."""
    left, amounts = want
    for v, amount in amounts.items():
        left -= amount * replicas[v]
    return left


def floors(problem: PlacementProblem, models: Sequence[Asking]) -> list[int]:
    """Return the replicas of each variant that are there whatever is decided."""
    least = [terms.lower for terms in problem.variants]
    for model in models:
        for v, count in model.floors.items():
            least[v] = max(least[v], min(count, problem.variants[v].upper))
    return least


def _asking(problem: PlacementProblem, rows: Sequence[CoverRow]) -> Asking | None:
    amounts = [dict(row.terms) for row in rows]
    named: set[int] = set()
    named.update(*amounts)
    if not named:
        return None
    demands: list[Want] = []
    warmth: list[Want] = []
    own: dict[int, int] = {}
    for row, shares in zip(rows, amounts, strict=True):
        if len(shares) == 1 < len(named):
            ((v, amount),) = row.terms
            own[v] = max(own.get(v, 0), -(-row.requirement // amount))
        else:
            (demands if row.stage is Stage.DEMAND else warmth).append((row.requirement, shares))
    variants = tuple(sorted(named))
    priority = min([row.priority for row in rows])
    return Asking(problem.variants[variants[0]].name, priority, variants, demands, warmth, own)
