"""The results of every benchmark: parts, each with rows, tables and goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hack.bench.goals import Goal
from hack.bench.table import Columns, table_lines


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of the results so far."""

    name: str = ""
    """Name of its rows in the results file; rows of a part without a name are not written."""
    rows: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Sequence[str]] = ()
    """Printed tables, each a list of lines."""
    goals: Sequence[Goal] = ()


def part_of(
    name: str,
    results: Sequence[Any],
    *tables: Sequence[str],
    columns: Columns[Any] = (),
    goals: Iterable[Goal] = (),
) -> Part:
    """Return a part of data classes, each a row and, with columns, a line of a table."""
    own = [table_lines(columns, results)] if columns else []
    return Part(name=name, rows=[asdict(one) for one in results], tables=[*tables, *own], goals=[*goals])
