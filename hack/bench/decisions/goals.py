"""The goals of decisions, as far as they were measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final

from hack.bench.decisions.asking import Asking
from hack.bench.decisions.rows import rows
from hack.bench.decisions.sizing_cost import SizingCost
from hack.bench.decisions.sweeping import RowResult
from hack.bench.goals import Goal

_MOST_OF_FIXED: Final = 0.5
_MOST_SIZING_SECONDS: Final = 1.0


def goals(
    results: Sequence[RowResult], sizing: SizingCost | None, asking: Asking | None, *, slowness: float
) -> list[Goal]:
    """Return the goals that were measured.

    The time of sizing comes twice: as measured, and at the pace of the machine that such goals were set on.
    """
    return [
        *_of_concurrency(results),
        *_of_clairvoyant(results),
        *_of_constant(results),
        *_of_fixed(results),
        *_missed(results),
        *_reversals(results),
        *_sizing(sizing, slowness),
        *_asking(asking),
    ]


def _of_concurrency(results: Sequence[RowResult]) -> Iterator[Goal]:
    for result in results:
        if result.concurrency:
            ratio = result.ours.cost / result.concurrency.cost
            most = rows()[result.name].most.of_concurrency
            yield Goal(
                name=f"cost_to_best_concurrency_in_{result.name}", value=ratio, unit="times", most=most
            )


def _of_clairvoyant(results: Sequence[RowResult]) -> Iterator[Goal]:
    """Yield ratios with the same requests: that bound is played with one seed."""
    for result in results:
        most = rows()[result.name].most.of_clairvoyant
        if result.clairvoyant and most is not None:
            ratio = result.ours_first.cost / result.clairvoyant.cost
            yield Goal(name=f"cost_to_clairvoyant_in_{result.name}", value=ratio, unit="times", most=most)


def _of_constant(results: Sequence[RowResult]) -> Iterator[Goal]:
    for result in results:
        most = rows()[result.name].most.of_constant
        if result.constant and most is not None:
            ratio = result.ours.cost / result.constant.cost
            yield Goal(name=f"cost_to_best_constant_in_{result.name}", value=ratio, unit="times", most=most)


def _of_fixed(results: Sequence[RowResult]) -> Iterator[Goal]:
    """Yield cost and misses over all rows beside each setting that stays the same."""
    if not results:
        return
    cost = sum(result.ours.cost for result in results)
    missed = 100 * fmean(result.ours.missed for result in results)
    for place in range(min(len(result.fixed) for result in results)):
        fixed = [result.fixed[place] for result in results]
        name = fixed[0].policy.partition("@")[0].replace(":", "_")
        ratio = cost / sum(item.cost for item in fixed)
        yield Goal(name=f"cost_to_fixed_{name}", value=ratio, unit="times", most=_MOST_OF_FIXED)
        most = 100 * fmean(item.missed for item in fixed)
        yield Goal(name=f"missed_beside_fixed_{name}", value=missed, unit="%", most=most)


def _missed(results: Sequence[RowResult]) -> Iterator[Goal]:
    for result in results:
        most = rows()[result.name].most.missed_percent
        if most is not None:
            yield Goal(name=f"missed_in_{result.name}", value=100 * result.ours.missed, unit="%", most=most)


def _reversals(results: Sequence[RowResult]) -> Iterator[Goal]:
    for result in results:
        most = rows()[result.name].most.reversals_per_hour
        value = result.ours.reversals_per_hour
        yield Goal(name=f"reversals_in_{result.name}", value=value, unit="per hour", most=most)


def _sizing(cost: SizingCost | None, slowness: float) -> Iterator[Goal]:
    if cost:
        name, most = f"sizing_of_{cost.variants}_variants", _MOST_SIZING_SECONDS
        yield Goal(name=name, value=cost.cpu_seconds, unit="s", most=most)
        scaled = cost.cpu_seconds / slowness
        yield Goal(name=f"{name}_at_reference_pace", value=scaled, unit="s", most=most)


def _asking(asked: Asking | None) -> Iterator[Goal]:
    if asked:
        name = f"requests_per_pod_in_a_cycle_of_{asked.pods}"
        yield Goal(name=name, value=asked.most_per_pod, unit="requests", most=1)
