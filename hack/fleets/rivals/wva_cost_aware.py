"""Changes to the current state by the workload-variant autoscaler's cost-aware optimizer and its limiter.

For each model separately, missing capacity is added to the variant with the lowest cost per capacity, and
surplus is removed from the most expensive. The limiter then grants scale-ups from the remaining accelerators
of each kind, starting with the model with the least surplus. It ignores priorities and other variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.planning.problem import PER_MILLE, VariantTerms
from hack.fleets.rivals.pools import Pools
from hack.fleets.rivals.view import ModelWants, RivalView, Want, shortfall


def counts(view: RivalView) -> tuple[int, ...]:
    """Return the replicas of each variant, considering only accelerator counts by kind."""
    variants = view.problem.variants
    running = [max(t.lower, min(t.current, t.upper)) for t in variants]
    targets = list(view.floors)
    for model in view.models:
        for v in model.variants:
            targets[v] = running[v]
        _decide(variants, model, targets, view.floors)
    return tuple(_limit(view, running, targets))


def _decide(
    variants: Sequence[VariantTerms], model: ModelWants, targets: list[int], least: Sequence[int]
) -> None:
    """Update the targets of one model's variants."""
    for want in model.demands:
        lacking = shortfall(want, targets)
        if lacking > 0:
            _scale_up(variants, (lacking, want[1]), targets)
    above = [(-variants[v].cost, v) for v in model.variants if targets[v] > least[v]]
    if above:
        above.sort()
        _scale_down(variants, model, above, targets, least)
    for v in model.variants:
        targets[v] = max(targets[v], least[v])
    for want in model.warmth:
        lacking = shortfall(want, targets)
        if lacking > 0:
            v = _cheapest(variants, want[1])
            targets[v] = max(targets[v], min(targets[v] + lacking, variants[v].upper))


def _scale_up(variants: Sequence[VariantTerms], lacking: Want, targets: list[int]) -> None:
    """Add missing capacity at the lowest cost per capacity; a maximum passes the rest to the next variant."""
    left, amounts = lacking
    by_ratio = [(variants[v].cost / amount, v, amount) for v, amount in amounts.items()]
    by_ratio.sort()
    for _, v, amount in by_ratio:
        more = min(-(-left // amount), variants[v].upper - targets[v])
        targets[v] += more
        left -= more * amount
        if left <= 0:
            return


def _scale_down(
    variants: Sequence[VariantTerms],
    model: ModelWants,
    dearest_first: Sequence[tuple[int, int]],
    targets: list[int],
    least: Sequence[int],
) -> None:
    """Remove whole replicas in the order of (-cost, variant); the last one left is the cheapest.

    Nothing is removed while any demand is unmet.
    """
    spare = [(-shortfall(want, targets), want[1]) for want in model.demands]
    for left, _ in spare:
        if left < 0:
            return
    for _, v in dearest_first:
        count = targets[v] - least[v]
        for left, amounts in spare:
            if amount := amounts.get(v):
                count = min(count, left // amount)
        if count and v == _cheapest(variants, model.variants):
            count = min([count, *(-shortfall(want, targets) for want in model.warmth)])
        if count > 0:
            targets[v] -= count
            spare = [(left - count * amounts.get(v, 0), amounts) for left, amounts in spare]


def _cheapest(variants: Sequence[VariantTerms], some: Iterable[int]) -> int:
    return min([(variants[v].cost, v) for v in some])[1]


def _limit(view: RivalView, running: Sequence[int], targets: Sequence[int]) -> list[int]:
    """Return the targets with scale-ups limited; accelerators freed by scale-downs count only next time."""
    variants, pools, result = view.problem.variants, Pools(view, running), list(targets)
    ups = [v for v, target in enumerate(targets) if target > running[v]]
    spare_of = dict.fromkeys(ups, 0)
    for model in view.models:
        growing = [v for v in model.variants if v in spare_of]
        if growing:
            spare_of.update(dict.fromkeys(growing, _spare(model, running)))
    for v in sorted(ups, key=lambda v: (spare_of[v], variants[v].cost, variants[v].name)):
        result[v] = running[v] + pools.take(v, targets[v] - running[v])
    return result


def _spare(model: ModelWants, running: Sequence[int]) -> int:
    """Return the model's surplus in per mille of its demand; negative for a deficit."""
    return min([-shortfall(want, running) * PER_MILLE // want[0] for want in model.demands], default=0)
