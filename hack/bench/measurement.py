"""What every run measures, whatever its subject: parts, each with rows, tables and goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hack.bench.goals import Goal
from hack.bench.table import Columns, tabulated


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of what was measured so far."""

    name: str = ""
    """Of its rows in a results file; what has no name is for people only."""
    rows: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Sequence[str]] = ()
    """For people, as lines."""
    goals: Sequence[Goal] = ()


def part_of(
    name: str,
    found: Sequence[Any],
    *tables: Sequence[str],
    columns: Columns[Any] = (),
    goals: Iterable[Goal] = (),
) -> Part:
    """Return a part of data classes, each a row and maybe a line of a table; nothing found has no table."""
    own = [tabulated(columns, found)] if columns else []
    told = [*tables, *own] if found else []
    return Part(name=name, rows=[asdict(one) for one in found], tables=told, goals=[*goals])
