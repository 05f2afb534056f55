"""What every run measures, whatever its subject: parts, each with rows, tables and goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hack.bench.goals import Goal
from hack.bench.table import Columns, tabulated

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


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
    found: Sequence[T],
    *tables: Sequence[str],
    columns: Columns[T] = (),
    goals: Iterable[Goal] = (),
) -> Part:
    """Return a part of data classes, each a row and maybe a line of a table; nothing found has no table."""
    own = [tabulated(columns, found)] if columns else []
    told = [*tables, *own] if found else []
    return Part(name=name, rows=[asdict(one) for one in found], tables=told, goals=[*goals])


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundSettings:
    """How often and how long to measure, where CPU time is what is measured."""

    rounds: int
    seconds: float
    """Of each case, server and round."""
