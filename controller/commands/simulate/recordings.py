"""Recorded requests and metrics: included traces, and files with one entry per line, CSV or JSON objects.

Requests have two public formats. Azure: `TIMESTAMP,ContextTokens,GeneratedTokens`, times as dates or seconds
since 1970. Mooncake: `{"timestamp": 27482, "input_length": 6955, "output_length": 52}`, times in ms.

Metrics are CSV with the columns `time,metric,value`, or JSON with these members. A time is a number of
seconds or a date, and a value the total over all replicas; an empty or NaN value means that the metric was
unknown.

Lines need not be sorted by time: combined logs of several gateways rarely are.
"""

from __future__ import annotations

import csv
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeVar

from apiserver.schema.json import JsonValue
from controller.commands.check.documents import Source, read_sources
from controller.policies.policy import Value
from controller.simulation.workload import Trace, TraceEntry, included_traces, load_trace

Row = TypeVar("Row")

_AZURE: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_MOONCAKE: Final = ("timestamp", "input_length", "output_length")
_METRICS: Final = ("time", "metric", "value")
_FRACTION: Final = re.compile(r"(\.\d{6})\d+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MOST_TOKENS: Final = 10_000_000
_MOST_MS: Final = 10**13
_MOST_EPOCH_SECONDS: Final = 10_000_000_000
"""Seconds since 1970 beyond which a number is in milliseconds, or no time."""

_MOST_REQUEST_SECONDS: Final = 366 * 86_400
_MOST_METRIC_SECONDS: Final = 31 * 86_400
_LONGEST_SHOWN: Final = 40
_MOST_SHOWN: Final = 20


def one_source(name: str, *, what: str = "file") -> Source:
    """Return the content of one file, which must not be a directory, or why it cannot be read."""
    if Path(name).is_dir():
        return Source(name=name, problem=f"is a directory: specify one {what}")
    (source,) = read_sources([name])
    return source


def trace_of(name: str, *, folder: Path) -> tuple[Trace, list[str]]:
    """Return a trace that is included, or in a file of a folder; or its problems."""
    if name in included_traces():
        return load_trace(name), []
    path = folder / name
    if not path.exists():
        known = ", ".join(included_traces())
        return (), [f"trace {name!r}: there is no file {path}, and no such included trace; there are {known}"]
    source = one_source(str(path))
    if source.problem:
        return (), [f"{source.name}: {source.problem}"]
    trace, problems = read_trace(source.data, file=source.name)
    return trace, _first_of(problems, source.name)


def read_trace(content: bytes, *, file: str) -> tuple[Trace, list[str]]:
    """Return the requests in a file of either format, the first one at 0; or the problems of the file."""
    text, problem = _decode(content)
    if not problem and not text.strip():
        problem = "is empty: a trace has one line for each request"
    if problem:
        return (), [f"{file}: {problem}"]
    names, moment_us = (_MOONCAKE, _number_us) if _is_json(text) else (_AZURE, _date_us)
    rows, problems = _read_rows(text, file, names, partial(_request, names, moment_us))
    if problems:
        return (), problems
    if not rows:
        return (), [f"{file}: contains no request: a trace has one line for each"]
    rows.sort(key=itemgetter(0))
    begin_us = rows[0][0]
    if rows[-1][0] - begin_us > _MOST_REQUEST_SECONDS * 1_000_000:
        return (), [f"{file}: spans more than 366 days: are all times of the same clock and unit?"]
    entries = (
        TraceEntry(
            offset_ms=round((at_us - begin_us) / 1e6 * 1000), prompt_tokens=prompt, output_tokens=output
        )
        for at_us, prompt, output in rows
    )
    return tuple(entries), []


def _request(
    names: Sequence[str], moment_us: Callable[[JsonValue], int], cells: list[JsonValue]
) -> tuple[int, int, int]:
    """Return time in us from any origin, prompt and output tokens. Raises ValueError for all wrong cells."""
    wrong, values = [], []
    for name, number_of, value in zip(names, (moment_us, _tokens, _tokens), cells, strict=True):
        try:
            values.append(number_of(value))
        except (ValueError, OverflowError, TypeError) as error:
            text = repr(value)
            text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
            wrong.append(f"{name} {text} {error}")
    if wrong:
        raise ValueError("; ".join(wrong))
    at_us, prompt, output = values
    return at_us, prompt, output


def _date_us(value: JsonValue) -> int:
    seconds = _number(value)
    if seconds is not None and 0 <= seconds <= _MOST_EPOCH_SECONDS:
        return round(seconds * 1_000_000)
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", str(value)))
    except ValueError:
        raise ValueError("must be a time such as 2023-11-16 18:15:46.6805900, or 1700158546.68 (s)") from None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _number_us(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_MS:
        raise ValueError("must be a number of milliseconds, 0 or more")
    return round(value * 1000)


def _tokens(value: JsonValue) -> int:
    text = str(value)
    try:
        number = float(text) if len(text) <= _LONGEST_SHOWN and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not 1 <= number <= _MOST_TOKENS or number != int(number):
        raise ValueError(f"must be a whole number from 1 to {_MOST_TOKENS}")
    return int(number)


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricTrace:
    """The samples of each metric, sorted by time from 0 on."""

    samples: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """Seconds and values, by name."""

    @property
    def end_seconds(self) -> float:
        """Time of the last sample."""
        return max((course[-1][0] for course in self.samples.values()), default=0.0)

    def at(self, seconds: float) -> dict[str, Value]:
        """Return the latest sample of each metric at a time, with its age."""
        latest = {}
        for name, course in self.samples.items():
            if place := bisect_right(course, seconds, key=itemgetter(0)):
                since_seconds, value = course[place - 1]
                latest[name] = Value(value=value, age_seconds=seconds - since_seconds)
        return latest


def is_metric_trace(name: str) -> bool:
    """Return whether a file contains metrics instead of requests, according to its first line."""
    try:
        with Path(name).open("rb") as file:
            head = file.read(4096).decode("utf-8-sig", errors="replace").lstrip().partition("\n")[0]
    except OSError:
        return False
    return '"metric"' in head if _is_json(head) else "metric" in map(str.strip, head.split(","))


def read_metric_trace(name: str) -> tuple[MetricTrace, list[str]]:
    """Return the metrics in a file, or its problems."""
    source = one_source(name)
    text, problem = ("", source.problem) if source.problem else _decode(source.data)
    if problem:
        return MetricTrace(), [f"{source.name}: {problem}"]
    rows, problems = _read_rows(text, name, _METRICS, _sample)
    if problems:
        return MetricTrace(), _first_of(problems, name)
    if not rows:
        return MetricTrace(), [f"{name}: contains no sample"]
    rows.sort(key=itemgetter(0))
    begin = rows[0][0]
    if rows[-1][0] - begin > _MOST_METRIC_SECONDS:
        return MetricTrace(), [f"{name}: spans more than 31 days: are all times of one unit?"]
    samples: dict[str, list[tuple[float, float]]] = {}
    for seconds, metric, value in rows:
        samples.setdefault(metric, []).append((seconds - begin, value))
    return MetricTrace(samples=samples), []


def _sample(cells: list[JsonValue]) -> tuple[float, str, float]:
    """Return time in seconds from any origin, name and value. Raises ValueError for the first wrong cell."""
    moment, metric, value = cells
    seconds = _seconds(moment)
    number = math.nan if value in ("", None) else _number(value)
    if seconds is None:
        raise ValueError(f"time {str(moment)[:_LONGEST_SHOWN]!r} is neither a number of seconds nor a date")
    if not isinstance(metric, str) or not metric:
        raise ValueError("metric must be a name")
    if number is None:
        raise ValueError("value must be a number")
    return seconds, metric, number


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


def _decode(content: bytes) -> tuple[str, str]:
    """Return the text, or what is wrong with it."""
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        return "", f"is not UTF-8 text: {error.reason} at byte {error.start}"


def _first_of(problems: Sequence[str], file: str) -> list[str]:
    """Return the problems with the lines of a file; of many, the first ones and the number of the others."""
    more = len(problems) - _MOST_SHOWN
    return [*problems[:_MOST_SHOWN], *([f"{file}: {more} more lines are invalid"] if more > 0 else [])]


def _read_rows(
    text: str, file: str, names: Sequence[str], row_of: Callable[[list[JsonValue]], Row]
) -> tuple[list[Row], list[str]]:
    """Return the rows of the lines that are not empty, and what is wrong with the others."""
    rows: list[Row] = []
    problems: list[str] = []
    lines = text.splitlines()
    for number, cells in _json_cells(lines, names) if _is_json(text) else _csv_cells(lines, names):
        if isinstance(cells, str):
            problems.append(f"{file}:{number}: {cells}")
            continue
        try:
            rows.append(row_of(cells))
        except ValueError as error:
            problems.append(f"{file}:{number}: {error}")
    return rows, problems


def _is_json(text: str) -> bool:
    """Return whether the lines are JSON objects, by the first character."""
    return text.lstrip().startswith("{")


_Cells = tuple[int, list[JsonValue] | str]
"""The number of a line, and its values, or what is wrong with it."""


def _csv_cells(lines: list[str], names: Sequence[str]) -> Iterator[_Cells]:
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
    except (StopIteration, csv.Error):
        header = []
    if missing := [name for name in names if name not in header]:
        what = f"column {missing[0]} is" if len(missing) == 1 else f"columns {', '.join(missing)} are"
        yield 1, f"{what} missing: the first line must be {','.join(names)}"
        return
    places = [header.index(name) for name in names]
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > max(places):
                yield reader.line_num, [cells[place].strip() for place in places]
            else:
                yield reader.line_num, f"has {len(cells)} columns: the first line has more"
    except csv.Error as error:
        yield reader.line_num, f"is not CSV: {error}"


def _json_cells(lines: list[str], names: Sequence[str]) -> Iterator[_Cells]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield number, "is not JSON: each line must be one object"
            continue
        if not isinstance(value, dict):
            yield number, "is not a JSON object"
        elif missing := [name for name in names if name not in value]:
            yield number, f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        else:
            yield number, [value[name] for name in names]
