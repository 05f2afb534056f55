"""The result of each row, with its rivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hack.decisions.points import Played, Point, mean
from hack.decisions.rivals import SEED, Kept, NotMeasuredError, Rivals, keeps, kept_rivals
from hack.decisions.rows import Row, rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One row: ours as the mean over the seeds, and with the first one, which is that of the rivals."""

    name: str
    seeds: int
    ours: Played
    first: Played
    rivals: Rivals | None
    """None if they are not measured."""

    @property
    def row(self) -> Row:
        """The row."""
        return rows()[self.name]


def results(played: Mapping[Point, Played], kept: Mapping[str, Kept]) -> list[Result]:
    """Return the results of the rows that have any, in the order of the table."""
    items = []
    for row in rows().values():
        ours = {point.seed: item for point, item in played.items() if point.row == row.name}
        if SEED in ours:
            whole, rivals = mean([*ours.values()]), rivals_or_none(row, kept)
            items.append(Result(name=row.name, seeds=len(ours), ours=whole, first=ours[SEED], rivals=rivals))
    return items


def rivals_or_none(row: Row, kept: Mapping[str, Kept]) -> Rivals | None:
    """Return the kept rivals of a row; None if they are missing, or the row has changed."""
    try:
        return kept_rivals(row, kept)
    except NotMeasuredError:
        return None


def fixed_everywhere(kept: Mapping[str, Kept]) -> Mapping[str, Played]:
    """Return for each row of real traffic the HPA on concurrency that keeps its promise in all of them.

    These are all rows with the same promise, and the HPA is the cheapest such one in total. Rows are left out
    if no HPA does, or unless the rivals of all of them are measured.
    """
    items: dict[str, Played] = {}
    real = [row for row in rows().values() if row.is_real]
    for promised in {row.promised for row in real}:
        alike = [row for row in real if row.promised == promised]
        known = [rivals.fixed for row in alike if (rivals := rivals_or_none(row, kept))]
        able = [
            setting
            for setting in zip(*known, strict=True)
            if len(known) == len(alike) and all(keeps(item, promised) for item in setting)
        ]
        if able:
            best = min(able, key=lambda setting: sum(item.cost for item in setting))
            items |= {row.name: item for row, item in zip(alike, best, strict=True)}
    return items
