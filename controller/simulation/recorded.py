"""Read traces in two public formats: Azure's CSV and Mooncake's JSON lines.

Azure: `TIMESTAMP,ContextTokens,GeneratedTokens`, one request per line, times as dates.
Mooncake: `{"timestamp": 27482, "input_length": 6955, "output_length": 52}`, times in milliseconds.
Lines need not be sorted by time: combined logs of several gateways rarely are.
"""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING

from controller.simulation.trace import Trace, TraceEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_MOONCAKE = ("timestamp", "input_length", "output_length")
_FRACTION = re.compile(r"(\.\d{6})\d+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_TOKENS = 10_000_000
_MOST_SECONDS = 366 * 86_400
_MOST_MS = 10**13
_LONGEST_SHOWN = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A trace, or the problems of its file with their lines."""

    trace: Trace = ()
    problems: tuple[str, ...] = ()


_Row = tuple[int, int, int]
"""Time in microseconds from any origin, prompt tokens, output tokens."""


def read_trace(content: bytes, *, file: str) -> Recorded:
    """Read a trace in either format, detected by its first character; its first request is at 0."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _refused(file, f"is not UTF-8 text: {error.reason} at byte {error.start}")
    lines = text.splitlines()
    if not text.strip():
        return _refused(file, "is empty: a trace has one line for each request")
    rows: list[_Row] = []
    problems: list[str] = []
    parsed = _mooncake(lines) if text.lstrip().startswith("{") else _azure(lines)
    for number, row in parsed:
        if isinstance(row, str):
            problems.append(f"{file}:{number}: {row}")
        else:
            rows.append(row)
    if problems:
        return Recorded(problems=tuple(problems))
    if not rows:
        return _refused(file, "contains no request: a trace has one line for each")
    return _in_order(rows, file=file)


def _in_order(rows: list[_Row], *, file: str) -> Recorded:
    rows.sort(key=itemgetter(0))
    begin_us, end_us = rows[0][0], rows[-1][0]
    if end_us - begin_us > _MOST_SECONDS * 1_000_000:
        return _refused(file, "spans more than 366 days: are all times of the same clock and unit?")
    return Recorded(
        trace=tuple(
            TraceEntry(
                offset_ms=round((at_us - begin_us) / 1e6 * 1000), prompt_tokens=prompt, output_tokens=output
            )
            for at_us, prompt, output in rows
        )
    )


def _azure(lines: list[str]) -> Iterator[tuple[int, _Row | str]]:
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
    except (StopIteration, csv.Error):
        header = []
    missing = [name for name in _AZURE if name not in header]
    if missing:
        yield 1, f"column {', '.join(missing)} is missing: the first line must be {','.join(_AZURE)}"
        return
    places = [header.index(name) for name in _AZURE]
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, _azure_row(cells, places)
    except csv.Error as error:
        yield reader.line_num, f"is not CSV: {error}"


def _azure_row(cells: list[str], places: list[int]) -> _Row | str:
    if len(cells) <= max(places):
        return f"has {len(cells)} columns: the first line has more"
    moment, prompt, output = (cells[place].strip() for place in places)
    return _row(_AZURE, _date_us, moment, prompt, output)


def _mooncake(lines: list[str]) -> Iterator[tuple[int, _Row | str]]:
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
            continue
        missing = [name for name in _MOONCAKE if name not in value]
        if missing:
            yield number, f"{', '.join(missing)} is missing"
            continue
        moment, prompt, output = (value[name] for name in _MOONCAKE)
        yield number, _row(_MOONCAKE, _number_us, moment, prompt, output)


def _row(
    names: tuple[str, ...],
    moment_us: Callable[[object], int],
    moment: object,
    prompt: object,
    output: object,
) -> _Row | str:
    """Return the numbers of a line, or a message with all of its problems."""
    wrong = []
    values: list[int] = []
    for name, read, value in zip(names, (moment_us, _tokens, _tokens), (moment, prompt, output), strict=True):
        try:
            values.append(read(value))
        except (ValueError, OverflowError, TypeError) as error:
            wrong.append(f"{name} {_shown(value)} {error}")
    if wrong:
        return "; ".join(wrong)
    moment_value, prompts, outputs = values
    return moment_value, prompts, outputs


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _date_us(value: object) -> int:
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", str(value)))
    except ValueError:
        raise ValueError("must be a time such as 2023-11-16 18:15:46.6805900") from None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _number_us(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_MS:
        raise ValueError("must be a number of milliseconds, 0 or more")
    return round(value * 1000)


def _tokens(value: object) -> int:
    text = str(value)
    try:
        number = float(text) if len(text) <= _LONGEST_SHOWN and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not 1 <= number <= _MOST_TOKENS or number != int(number):
        raise ValueError(f"must be a whole number from 1 to {_MOST_TOKENS}")
    return int(number)


def _refused(file: str, text: str) -> Recorded:
    return Recorded(problems=(f"{file}: {text}",))
