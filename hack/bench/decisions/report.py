"""The printed table: our result in each row, and those of the policies that it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hack.bench.decisions.points import Played
from hack.bench.decisions.sweeping import RowResult
from hack.bench.goals import shown
from hack.bench.table import Row, aligned

_HEAD = (
    "row", "policy", "seeds", "cost", "ours / its cost", "missed %", "TTFT %", "ITL %", "TTFT p99 s",
    "reversals/h", "decided/h", "missed % by priority", "",
)  # fmt: skip
_NONE = "-"


def rows_table(results: Sequence[RowResult]) -> list[str]:
    """Return the lines of the table, ours first in each row."""
    lines: list[Row] = [_HEAD]
    for result in results:
        for number, (title, played) in enumerate(_lines(result)):
            lines.append((result.name if not number else "", *_cells(title, played, result)))
    return aligned(lines)


def _lines(result: RowResult) -> Iterator[tuple[str, Played | None]]:
    yield "", result.ours
    yield "best concurrency", result.concurrency
    yield from (("fixed", fixed) for fixed in result.fixed)
    if result.constant:
        yield "best constant", result.constant
    yield from (("", other) for other in (*result.others, result.clairvoyant) if other)


def _cells(title: str, played: Played | None, result: RowResult) -> Row:
    if played is None:
        return (title, *[_NONE] * (len(_HEAD) - 3), "none misses as little")
    # Results of a single seed are compared with ours of that seed, for the same requests.
    ours = result.ours if played.seeds == result.ours.seeds else result.ours_first
    p99, shares = played.ttft_p99_seconds, [_percent(share) for share in played.by_priority.values()]
    return (
        f"{title}, {played.policy}" if title else played.policy,
        str(played.seeds),
        f"{played.cost:.0f}",
        f"{ours.cost / played.cost:.2f}" if played.cost else _NONE,
        *map(_percent, (played.missed, played.missed_ttft, played.missed_itl)),
        _NONE if p99 is None else shown(p99),
        f"{played.reversals_per_hour:.1f}",
        f"{played.decided_reversals_per_hour:.1f}",
        " / ".join(shares) if len(shares) > 1 else _NONE,
        played.note,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
