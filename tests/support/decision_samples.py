"""Results and rows for tests of the decision benchmark."""

from __future__ import annotations

from hack.bench.decisions.points import Played
from hack.bench.decisions.sweeping import RowResult


def played(
    policy: str,
    *,
    cost: float,
    missed: float = 0.0,
    reversals: float = 0.0,
    seeds: int = 1,
    by_priority: dict[int, float] | None = None,
) -> Played:
    """Return the result of a point, in which all misses are of the TTFT target."""
    return Played(
        policy=policy,
        seeds=seeds,
        cost=cost,
        missed=missed,
        missed_ttft=missed,
        missed_itl=0.0,
        ttft_p99_seconds=0.25,
        reversals_per_hour=reversals,
        decided_reversals_per_hour=reversals,
        by_priority=by_priority or {10: missed},
    )


def result(
    name: str,
    *,
    ours: Played,
    concurrency: Played | None = None,
    constant: Played | None = None,
    clairvoyant: Played | None = None,
    fixed: tuple[Played, ...] = (),
) -> RowResult:
    """Return the result of a row."""
    return RowResult(
        name=name,
        ours=ours,
        ours_first=ours,
        fixed=fixed,
        concurrency=concurrency,
        constant=constant,
        others=(),
        clairvoyant=clairvoyant,
    )
