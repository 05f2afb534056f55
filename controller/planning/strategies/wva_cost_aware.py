"""From what runs now, as the workload-variant autoscaler's cost-aware optimizer and its limiter decide.

Each model alone: what is missing goes to the variant with the least cost per capacity, what is to spare is
taken from the dearest. The limiter then grants scale-ups from the accelerators left of each kind, to whoever
has least to spare first; priorities and other variants are not known to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.problem import PER_MILLE
from controller.planning.strategies.asking import missing
from controller.planning.strategies.pools import Pools

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controller.planning.problem import VariantTerms
    from controller.planning.strategies.asking import Asking, Want
    from controller.planning.strategies.view import View


def counts(view: View) -> tuple[int, ...]:
    """Return the replicas of each variant, by the number of accelerators of each kind only."""
    variants = view.problem.variants
    running = [max(t.lower, min(t.current, t.upper)) for t in variants]
    targets = list(view.floors)
    for model in view.models:
        for v in model.variants:
            targets[v] = running[v]
        _decide(variants, model, targets, view.floors)
    return tuple(_limited(view, running, targets))


def _decide(
    variants: Sequence[VariantTerms], model: Asking, targets: list[int], least: Sequence[int]
) -> None:
    """Change the targets of one model's variants."""
    for want in model.demands:
        _scale_up(variants, want, targets)
    _scale_down(variants, model, targets, least)
    for v in model.variants:
        targets[v] = max(targets[v], least[v])
    for want in model.warmth:
        lacking = missing(want, targets)
        if lacking > 0:
            v = _cheapest(variants, want[1])
            targets[v] = max(targets[v], min(targets[v] + lacking, variants[v].upper))


def _scale_up(variants: Sequence[VariantTerms], want: Want, targets: list[int]) -> None:
    """Add what is missing where capacity costs least; to the next variant only what a maximum leaves over."""
    lacking = missing(want, targets)
    if lacking <= 0:
        return
    for _, v, amount in sorted([(variants[v].cost / each, v, each) for v, each in want[1].items()]):
        more = min(-(-lacking // amount), variants[v].upper - targets[v])
        targets[v] += more
        lacking -= more * amount
        if lacking <= 0:
            return


def _scale_down(
    variants: Sequence[VariantTerms], model: Asking, targets: list[int], least: Sequence[int]
) -> None:
    """Remove whole replicas from the dearest variant on; the last one left is the cheapest.

    Nothing is removed while any demand is not met.
    """
    dearest_first = sorted([(-variants[v].cost, v) for v in model.variants if targets[v] > least[v]])
    spare = [-missing(want, targets) for want in model.demands]
    if not dearest_first or min(spare, default=0) < 0:
        return
    cheapest = _cheapest(variants, model.variants)
    for _, v in dearest_first:
        keep = least[v]
        if v == cheapest:
            keep = max([keep, *(missing(want, targets) + targets[v] for want in model.warmth)])
        amounts = [shares.get(v, 0) for _, shares in model.demands]
        most = [left // amount for left, amount in zip(spare, amounts, strict=True) if amount]
        count = max(0, min([targets[v] - keep, *most]))
        targets[v] -= count
        spare = [left - count * amount for left, amount in zip(spare, amounts, strict=True)]


def _cheapest(variants: Sequence[VariantTerms], some: Iterable[int]) -> int:
    return min([(variants[v].cost, v) for v in some])[1]


def _limited(view: View, running: Sequence[int], targets: Sequence[int]) -> list[int]:
    """Return the targets, scale-ups clipped; what is scaled down now is free for others only next time."""
    variants, pools, result = view.problem.variants, Pools(view, running), list(targets)
    ups = [v for v, target in enumerate(targets) if target > running[v]]
    spare_of = dict.fromkeys(ups, 0)
    for model in view.models:
        growing = spare_of.keys() & model.variants
        if growing:
            spare_of |= dict.fromkeys(growing, _spare(model, running))
    for v in sorted(ups, key=lambda v: (spare_of[v], variants[v].cost, variants[v].name)):
        result[v] = running[v] + pools.take(v, targets[v] - running[v])
    return result


def _spare(model: Asking, running: Sequence[int]) -> int:
    """Return what the model has beyond its demand, per mille of it; negative when it has too little."""
    return min([-missing(want, running) * PER_MILLE // want[0] for want in model.demands], default=0)
