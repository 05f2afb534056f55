"""The printed table: one line per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hack.bench.table import align
from hack.decisions.points import Played
from hack.decisions.results import Result

_HEAD: Final = (
    "row", "seeds", "cost", "missed %", "may miss %", "decided/h", "reversals/h", "cheapest fixed",
    "all rows", "best constant", "mean", "peak", "wva-v1", "wva-v2", "bound",
)  # fmt: skip
_NONE: Final = "-"
_NOT_MEASURED: Final = "rivals not measured; run with --rivals"


def rows_table(results: Sequence[Result], everywhere: Mapping[str, Played]) -> list[str]:
    """Return the lines of the table; cells of rivals: cost / missed %, and our cost relative to theirs."""
    return align([_HEAD, *([*_ours(result), *_rivals(result, everywhere)] for result in results)])


def _ours(result: Result) -> Iterator[str]:
    row, ours = result.row, result.ours
    shares = list(ours.by_priority.values())
    yield row.name
    yield str(result.seeds)
    yield f"{ours.cost:.0f}"
    yield " / ".join(map(_percent, shares if len(shares) > 1 else [ours.missed]))
    yield f"{100 * (1 - row.promised):g}" if row.is_real else _NONE
    yield f"{ours.decided_reversals_per_hour:.1f}"
    yield f"{ours.reversals_per_hour:.1f}"


def _rivals(result: Result, everywhere: Mapping[str, Played]) -> Iterator[str]:
    rivals, ours = result.rivals, result.first
    if rivals is None:
        yield from (_NOT_MEASURED, *[_NONE] * 7)
        return
    fixed = rivals.cheapest_fixed(result.row.promised)
    yield _cell(fixed, ours) if fixed else "none keeps it"
    others = (everywhere.get(result.name), rivals.constant, rivals.mean, rivals.peak)
    for other in (*others, *rivals.rules, rivals.bound):
        yield _cell(other, ours)


def _cell(other: Played | None, ours: Played) -> str:
    if other is None:
        return _NONE
    name = other.policy.partition(":")[2] if ":" in other.policy and "bound" not in other.policy else ""
    ratio = f", {ours.cost / other.cost:.2f}" if other.cost else ""
    shares = list(other.by_priority.values())
    missed = "/".join(map(_percent, shares if len(shares) > 1 else [other.missed]))
    return f"{name} {other.cost:.0f} / {missed}{ratio}".strip()


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
