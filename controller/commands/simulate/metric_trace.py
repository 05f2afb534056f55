"""Recorded metrics: CSV with the columns `time,metric,value`, or JSON lines with these fields.

A time is a number of seconds or a date, and a value the total over all replicas; an empty or NaN value means
that the metric was unknown at that time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from apiserver.schema.json import JsonValue
from controller.commands.simulate.given import one_source, problem_lines
from controller.policies.policy import Value
from controller.simulation.lines import entries

_COLUMNS: Final = ("time", "metric", "value")
_MOST_SECONDS: Final = 31 * 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricTrace:
    """The samples of each metric, sorted by time from 0 on; or the problems of the file."""

    moments: Mapping[str, Sequence[float]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def end_seconds(self) -> float:
        """Time of the last sample."""
        return max((course[-1] for course in self.moments.values()), default=0.0)

    def at(self, seconds: float) -> dict[str, Value]:
        """Return the latest sample of each metric at a time, with its age."""
        found = {}
        for name, course in self.moments.items():
            place = bisect_right(course, seconds)
            if place:
                age = seconds - course[place - 1]
                found[name] = Value(value=self.values[name][place - 1], age_seconds=age)
        return found


def is_metric_trace(name: str) -> bool:
    """Return whether a file contains metrics instead of requests, according to its first line."""
    try:
        with Path(name).open("rb") as file:
            head = file.read(4096).decode("utf-8-sig", errors="replace").lstrip().partition("\n")[0]
    except OSError:
        return False
    return '"metric"' in head if head.startswith("{") else "metric" in map(str.strip, head.split(","))


def read_metric_trace(name: str) -> MetricTrace:
    """Return the metrics in a file."""
    source = one_source(name)
    if source.problem:
        return MetricTrace(problems=(f"{source.name}: {source.problem}",))
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return MetricTrace(problems=(f"{name}: is not UTF-8 text: {error.reason} at byte {error.start}",))
    rows: list[tuple[float, str, float]] = []
    problems = []
    for number, cells in entries(text, _COLUMNS):
        row = cells if isinstance(cells, str) else _row(cells)
        if isinstance(row, str):
            problems.append(f"{name}:{number}: {row}")
        else:
            rows.append(row)
    if not rows and not problems:
        problems = [f"{name}: contains no sample"]
    return MetricTrace(problems=tuple(problem_lines(problems, name))) if problems else _in_order(name, rows)


def _in_order(name: str, rows: list[tuple[float, str, float]]) -> MetricTrace:
    rows.sort(key=lambda row: row[0])
    begin = rows[0][0]
    if rows[-1][0] - begin > _MOST_SECONDS:
        return MetricTrace(problems=(f"{name}: spans more than 31 days: are all times of one unit?",))
    moments: dict[str, list[float]] = {}
    values: dict[str, list[float]] = {}
    for seconds, metric, value in rows:
        moments.setdefault(metric, []).append(seconds - begin)
        values.setdefault(metric, []).append(value)
    return MetricTrace(moments=moments, values=values)


def _row(cells: list[JsonValue]) -> tuple[float, str, float] | str:
    moment, metric, value = cells
    seconds = _seconds(moment)
    number = math.nan if value in ("", None) else _number(value)
    if seconds is None:
        return f"time {str(moment)[:40]!r} is neither a number of seconds nor a date"
    if not isinstance(metric, str) or not metric:
        return "metric must be a name"
    return "value must be a number" if number is None else (seconds, metric, number)


def _seconds(value: JsonValue) -> float | None:
    number = _number(value)
    if number is not None:
        return number if math.isfinite(number) else None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
