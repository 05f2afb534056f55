"""Small fleets, which are to be placed best of all and at once: by family, and as goals."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from hack.bench.compared import OURS
from hack.bench.goals import Goal
from hack.bench.placement.outcome import Outcome
from hack.bench.table import Row, aligned
from hack.fleets.catalogue import BY_ROOM, RULED

SMALL: Final = 100
_SECONDS: Final = 0.3
_GROUPS: Final = {f"T6_{{}}_of_at_most_{SMALL}": BY_ROOM, f"T6_{{}}_of_at_most_{SMALL}_with_rules": RULED}
"""The goal was set on fleets that room alone holds; those whose pods have rules are told apart."""


def small_goals(outcomes: Sequence[Outcome], *, slowness: float) -> Iterator[Goal]:
    """Yield time and proof of the optimum: of the slowest fleet, and the share that is not proven."""
    for name, families in _GROUPS.items():
        here = [one for one in _small(outcomes) if one.instance.family in families]
        if here:
            spent = max(map(_cpu_seconds, here)) / slowness
            yield Goal(name=name.format("cpu"), value=spent, unit="s", most=_SECONDS)
            share = 100 * sum(not _is_best(one) for one in here) / len(here)
            yield Goal(name=name.format("not_proven_optimal"), value=share, unit="%", most=0.0)


def small_table(outcomes: Sequence[Outcome], *, slowness: float) -> list[str]:
    """Return the lines of the table: each family by size, times at the pace of the goals' machine."""
    rows: list[Row] = [
        (
            "small fleets, ours", "models", "fleets", "CPU s at the goals' pace", "slowest",
            "gap %", "best, proven",
        )
    ]  # fmt: skip
    groups: dict[tuple[str, int], list[Outcome]] = {}
    for one in _small(outcomes):
        groups.setdefault((one.instance.family, one.instance.size), []).append(one)
    for (family, size), group in groups.items():
        spent = [_cpu_seconds(one) / slowness for one in group]
        gaps = [one.worst_gap_percent for one in group if one.worst_gap_percent is not None]
        rows.append(
            (
                family,
                str(size),
                str(len(group)),
                f"{statistics.mean(spent):.3f}",
                f"{max(spent):.3f}",
                f"{max(gaps):.4f}" if gaps else "-",
                f"{sum(map(_is_best, group))} of {len(group)}",
            )
        )
    return aligned(rows) if len(rows) > 1 else []


def _small(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return ours of small fleets that are placed once."""
    return [
        one
        for one in outcomes
        if one.engine == OURS and one.levels and one.instance.size <= SMALL and one.steps == 1
    ]


def _cpu_seconds(one: Outcome) -> float:
    return statistics.median(one.cpu_seconds)


def _is_best(one: Outcome) -> bool:
    return one.worst_gap_percent == 0
