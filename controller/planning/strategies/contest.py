"""Which rules may be better than an answer that is known: the others are left as soon as that is clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.problem import Stage
from controller.planning.strategies import RULES
from controller.planning.strategies.granting import most, settled
from controller.planning.strategies.view import view_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.problem import CoverRow, PlacementProblem, Solution
    from controller.planning.strategies.rule import Rule
    from controller.planning.strategies.view import View


def contenders(
    problem: PlacementProblem, keys: Sequence[tuple[Stage, int]], values: Sequence[int]
) -> Iterator[Solution]:
    """Yield each rule's answer whose shortfalls may be lexicographically as good as these.

    `keys` are the levels in order, `values` the shortfall at each; what comes after them does not count.
    """
    view, bar = view_of(problem), Bar(problem, keys, values)
    for rule in RULES:
        answer = _answer(view, rule, bar)
        if answer is not None:
            yield answer


def _answer(view: View, rule: Rule, bar: Bar) -> Solution | None:
    """Return what a rule makes of the problem; None when even what it asks for or may get is behind."""
    asked = rule.asks(view)
    if bar.is_missed(asked):
        return None
    order = rule.order(view)
    promise = most(view, asked, order)
    return None if bar.is_missed(promise.replicas) else settled(view, promise, order)


class Bar:
    """The shortfalls of an answer, for others to be measured against, level by level."""

    def __init__(
        self, problem: PlacementProblem, keys: Sequence[tuple[Stage, int]], values: Sequence[int]
    ) -> None:
        """Take the shortfall at each level, in the order of the keys."""
        rows_of: dict[tuple[Stage, int], list[CoverRow]] = {key: [] for key in keys}
        for row in problem.rows:
            rows_of[row.level].append(row)
        self._variants = problem.variants
        self._levels = [(key[0], rows_of[key], value) for key, value in zip(keys, values, strict=False)]

    def is_missed(self, replicas: Sequence[int]) -> bool:
        """Tell whether these replicas, and with them all that are fewer, leave more short."""
        for stage, rows, value in self._levels:
            counted = self._ready(replicas) if stage is Stage.CONTINUITY else replicas
            missing = _missing(rows, counted, value)
            if missing != value:
                return missing > value
        return False

    def _ready(self, replicas: Sequence[int]) -> list[int]:
        return [min(terms.ready, count) for terms, count in zip(self._variants, replicas, strict=True)]


def _missing(rows: Sequence[CoverRow], replicas: Sequence[int], enough: int) -> int:
    """Return the weighted shortfall of some rows, or of the first of them when it exceeds what is enough."""
    total = 0
    for row in rows:
        provided = 0
        for v, amount in row.terms:
            provided += amount * replicas[v]
        if provided < row.requirement:
            total += row.weight * row.shortfall(provided)
            if total > enough:
                break
    return total
