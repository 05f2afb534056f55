"""The goals of decisions, for what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final

from hack.bench.decisions.asking import Asking
from hack.bench.decisions.points import Played
from hack.bench.decisions.rows import rows
from hack.bench.decisions.sizing_cost import SizingCost
from hack.bench.decisions.sweeping import RowResult
from hack.bench.goals import Goal, at_both_paces

_MOST_OF_FIXED: Final = 0.5
_MOST_SIZING_SECONDS: Final = 1.0


def goals(results: Sequence[RowResult], sizing: SizingCost, asked: Asking, *, slowness: float) -> list[Goal]:
    """Return the goals of the rows that were measured, of sizing at both paces, and of a cycle's requests."""
    held = [(result, rows()[result.name].most) for result in results]
    return [
        *_costs("best_concurrency", [(r.name, r.ours, r.concurrency, m.of_concurrency) for r, m in held]),
        # Compared for the same requests: the clairvoyant runs with the first seed only.
        *_costs("clairvoyant", [(r.name, r.ours_first, r.clairvoyant, m.of_clairvoyant) for r, m in held]),
        *_costs("best_constant", [(r.name, r.ours, r.constant, m.of_constant) for r, m in held]),
        *_of_fixed(results),
        *(
            Goal(name=f"missed_in_{r.name}", value=100 * r.ours.missed, unit="%", most=m.missed_percent)
            for r, m in held
            if m.missed_percent is not None
        ),
        *(
            Goal(
                name=f"reversals_in_{r.name}",
                value=r.ours.reversals_per_hour,
                unit="per hour",
                most=m.reversals_per_hour,
            )
            for r, m in held
        ),
        *at_both_paces(
            Goal(
                name=f"sizing_of_{sizing.variants}_variants",
                value=sizing.cpu_seconds,
                unit="s",
                most=_MOST_SIZING_SECONDS,
            ),
            slowness,
        ),
        Goal(
            name=f"requests_per_pod_in_a_cycle_of_{asked.pods}",
            value=asked.most_per_pod,
            unit="requests",
            most=1,
        ),
    ]


def _costs(other: str, beside: Sequence[tuple[str, Played, Played | None, float | None]]) -> Iterator[Goal]:
    """Yield our cost relative to another policy's, for each row with such a goal."""
    for row, ours, theirs, most in beside:
        if theirs and most is not None:
            ratio = ours.cost / theirs.cost
            yield Goal(name=f"cost_to_{other}_in_{row}", value=ratio, unit="times", most=most)


def _of_fixed(results: Sequence[RowResult]) -> Iterator[Goal]:
    """Yield cost and missed requests over all rows, compared with each fixed setting."""
    if not results:
        return
    cost = sum(result.ours.cost for result in results)
    missed = 100 * fmean(result.ours.missed for result in results)
    for fixed in zip(*(result.fixed for result in results), strict=False):
        name = fixed[0].policy.partition("@")[0].replace(":", "_")
        ratio = cost / sum(item.cost for item in fixed)
        yield Goal(name=f"cost_to_fixed_{name}", value=ratio, unit="times", most=_MOST_OF_FIXED)
        most = 100 * fmean(item.missed for item in fixed)
        yield Goal(name=f"missed_beside_fixed_{name}", value=missed, unit="%", most=most)
