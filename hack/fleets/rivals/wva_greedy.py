"""One variant per model, as the workload-variant autoscaler's `SolveGreedy` allocates accelerators.

Models are served by priority, and then by the loss of their second choice, with whole requirements only.
Models without an allocation then get as many replicas as are left, by priority (its policy
`PriorityExhaustive`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from controller.planning.problem import VariantTerms
from hack.fleets.rivals.pools import Pools
from hack.fleets.rivals.view import ModelWants, RivalView, Want

Choice = tuple[int, int, int, bool]
"""A way to serve a model with one variant: (value, variant, replicas, whether they meet everything).

The value is the cost relative to the current one, plus a penalty for changing the variant. The replicas are
in addition to the minimum.
"""

Turn = tuple[int, int, int, int, str, int, int]

_TENTHS = 10
"""Changing the variant costs a tenth of both costs, so values are counted in tenths."""


def counts(view: RivalView) -> tuple[int, ...]:
    """Return the replicas of each variant, considering only accelerator counts by kind."""
    replicas = list(view.floors)
    pools = Pools(view, replicas)
    variants = view.problem.variants
    choices = [
        _choices(variants, model, lacking, view.floors)
        for model, lacking in zip(view.models, view.lacking, strict=True)
    ]
    left = _allocate(view.models, choices, pools, replicas)
    for index in left:
        for _, v, count, _ in choices[index]:
            if got := pools.take(v, count):
                replicas[v] += got
                break
    return tuple(replicas)


def _allocate(
    models: Sequence[ModelWants], choices: Sequence[Sequence[Choice]], pools: Pools, replicas: list[int]
) -> list[int]:
    """Serve whole requirements in turn; return the models without an allocation, most important first."""
    left = []
    turns = [_turn(models[index], own, index, 0) for index, own in enumerate(choices) if own]
    heapq.heapify(turns)
    while turns:
        *_, index, position = heapq.heappop(turns)
        own = choices[index]
        _, v, count, is_whole = own[position]
        if is_whole and pools.fits(v, count):
            replicas[v] += pools.take(v, count)
        elif position + 1 < len(own):
            heapq.heappush(turns, _turn(models[index], own, index, position + 1))
        else:
            left.append(index)
    return left


def _turn(model: ModelWants, own: Sequence[Choice], index: int, position: int) -> Turn:
    """Return the sort key of a model's choice: by priority, regret, value, name."""
    value = own[position][0]
    if position + 1 == len(own):
        return model.priority, 0, 0, -value, model.name, index, position
    return model.priority, 1, value - own[position + 1][0], -value, model.name, index, position


def _choices(
    variants: Sequence[VariantTerms], model: ModelWants, lacking: Sequence[Want], base: Sequence[int]
) -> list[Choice]:
    """Return the replicas of each variant alone, by ascending value; empty if nothing is missing."""
    if not lacking:
        return []
    running = [v for v in model.variants if variants[v].current]
    cost_now = sum([variants[v].cost * variants[v].current for v in running])
    choices = []
    for v in model.variants:
        terms = variants[v]
        replicas, is_whole = 0, True
        for missing, amounts in lacking:
            amount = amounts.get(v)
            if not amount:
                is_whole = False
            elif amount * replicas < missing:
                replicas = -(-missing // amount)
        count = min(replicas, terms.upper - base[v])
        if count > 0:
            cost = terms.cost * (base[v] + count)
            value = _TENTHS * (cost - cost_now) + (0 if running == [v] else cost + cost_now)
            choices.append((value, v, count, is_whole and count == replicas))
    choices.sort()
    return choices
