"""One variant per model, as the workload-variant autoscaler's `SolveGreedy` allocates accelerators.

By priority, and then first whoever loses most by their second choice; whole requirements only. Who got
nothing then takes as many replicas as are left, by priority (its policy `PriorityExhaustive`).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.strategies.asking import Asking, askings, enough, floors, missing
from controller.planning.strategies.granting import by_priority, granted, pending
from controller.planning.strategies.pools import Pools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import PlacementProblem, Solution

    Turn = tuple[int, int, int, int, str, int, int]

_TENTHS = 10
"""Changing the variant costs a tenth of both costs; values are counted in tenths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """All that a model needs, of one variant."""

    value: int
    """Cost against what runs now, and a price for changing the variant."""

    variant: int
    replicas: int
    """Beyond those that are there whatever is decided."""

    is_whole: bool
    """Whether it meets every requirement."""


def place(problem: PlacementProblem) -> Solution:
    """Return the plan as far as limits and nodes allow."""
    return granted(problem, counts(problem), by_priority(problem))


def pending_accelerators(problem: PlacementProblem) -> int:
    """Return how many accelerators the counts ask for and no node has."""
    return pending(problem, counts(problem), by_priority(problem))


def counts(problem: PlacementProblem) -> tuple[int, ...]:
    """Return the replicas of each variant, by the number of accelerators of each kind only."""
    models = askings(problem)
    replicas = floors(problem, models)
    pools = Pools(problem)
    pools.take_all(replicas)
    choices = [_choices(problem, model, replicas) for model in models]
    left = _allocate(models, choices, pools, replicas)
    for index in left:
        for choice in choices[index]:
            if got := pools.take(choice.variant, choice.replicas):
                replicas[choice.variant] += got
                break
    return tuple(replicas)


def _allocate(
    models: Sequence[Asking], choices: Sequence[Sequence[Choice]], pools: Pools, replicas: list[int]
) -> list[int]:
    """Serve whole requirements in turn; return the models that got nothing, the most important first."""
    left = []
    turns = [_turn(models, choices, index, 0) for index in range(len(models)) if choices[index]]
    heapq.heapify(turns)
    while turns:
        *_, index, position = heapq.heappop(turns)
        choice = choices[index][position]
        if choice.is_whole and pools.fits(choice.variant, choice.replicas):
            replicas[choice.variant] += pools.take(choice.variant, choice.replicas)
        elif position + 1 < len(choices[index]):
            heapq.heappush(turns, _turn(models, choices, index, position + 1))
        else:
            left.append(index)
    return left


def _turn(models: Sequence[Asking], choices: Sequence[Sequence[Choice]], index: int, position: int) -> Turn:
    """Return when a model's choice is tried: by priority, regret, value, name."""
    model, own = models[index], choices[index]
    is_last = position + 1 == len(own)
    regret = 0 if is_last else own[position + 1].value - own[position].value
    value = own[position].value
    return model.priority, 0 if is_last else 1, -regret, -value, model.name, index, position


def _choices(problem: PlacementProblem, model: Asking, base: Sequence[int]) -> list[Choice]:
    """Return what each variant alone would take, the least value first; nothing when nothing is missing."""
    lacking = {row: missing(row, base) for row in model.wanted}
    if not any(lack > 0 for lack in lacking.values()):
        return []
    running = {v: problem.variants[v].current for v in model.variants if problem.variants[v].current}
    cost_now = sum(problem.variants[v].cost * count for v, count in running.items())
    found = []
    for v in model.variants:
        terms = problem.variants[v]
        needed = [enough(row, v, lack) for row, lack in lacking.items() if lack > 0]
        asked = max((count for count in needed if count is not None), default=0)
        count = min(asked, terms.upper - base[v])
        if count <= 0:
            continue
        cost = terms.cost * (base[v] + count)
        value = _TENTHS * (cost - cost_now) + (0 if list(running) == [v] else cost + cost_now)
        is_whole = count == asked and None not in needed
        found.append(Choice(value=value, variant=v, replicas=count, is_whole=is_whole))
    return sorted(found, key=lambda choice: (choice.value, choice.variant))
