"""Text tables: rows of cells as aligned lines."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from hack.bench.goals import short_number

T = TypeVar("T")
Row = Sequence[str]
Columns = Sequence[tuple[str, Callable[[T], str]]]
"""Columns of a table, each with a heading and a function that returns the cell of an item."""


def group_by(items: Iterable[T], key: Callable[[T], object]) -> list[list[T]]:
    """Return the items in groups of equal keys, in order of appearance."""
    groups: dict[object, list[T]] = {}
    for one in items:
        groups.setdefault(key(one), []).append(one)
    return [*groups.values()]


def table_lines(columns: Columns[T], items: Iterable[T]) -> list[str]:
    """Return a line of headings, and one line per item; no lines without items."""
    return align([[head for head, _ in columns], *([cell(one) for _, cell in columns] for one in items)])


def align(rows: Sequence[Row]) -> list[str]:
    """Return a row of headings and others as lines, two spaces between columns; none without other rows.

    Text is left-aligned, numbers are right-aligned.
    """
    if len(rows) == 1:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(_cells(row, widths)).rstrip() for row in rows]


def _cells(row: Row, widths: Sequence[int]) -> Iterator[str]:
    for cell, width in zip(row, widths, strict=True):
        yield cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)


def mean_of(value: Callable[[T], float | None], *, exact: bool = False) -> Callable[[Sequence[T]], str]:
    """Return a cell with the mean over a group, without unknown values; with four decimals if `exact`."""

    def cell(group: Sequence[T]) -> str:
        known = [number for number in map(value, group) if number is not None]
        if not known:
            return "-"
        return f"{statistics.mean(known):.4f}" if exact else short_number(statistics.mean(known))

    return cell


def ratio_of(ours: float, plain: float) -> str:
    """Return our cost as a fraction of the plain one, such as `1/12.5`."""
    return f"1/{plain / ours:.1f}"
