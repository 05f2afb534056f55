"""Read traces in two public formats: Azure's CSV and Mooncake's JSON lines.

Azure: `TIMESTAMP,ContextTokens,GeneratedTokens`, one request per line, times as dates.
Mooncake: `{"timestamp": 27482, "input_length": 6955, "output_length": 52}`, times in milliseconds.
Lines need not be sorted by time: combined logs of several gateways rarely are.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from controller.simulation.lines import entries, is_json
from controller.simulation.trace import Trace, TraceEntry

if TYPE_CHECKING:
    from collections.abc import Callable

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
        return _refuse(file, f"is not UTF-8 text: {error.reason} at byte {error.start}")
    if not text.strip():
        return _refuse(file, "is empty: a trace has one line for each request")
    rows: list[_Row] = []
    problems: list[str] = []
    names, moment_us = (_MOONCAKE, _number_us) if is_json(text) else (_AZURE, _date_us)
    for number, cells in entries(text, names):
        row = cells if isinstance(cells, str) else _row(names, moment_us, cells)
        if isinstance(row, str):
            problems.append(f"{file}:{number}: {row}")
        else:
            rows.append(row)
    if problems:
        return Recorded(problems=tuple(problems))
    if not rows:
        return _refuse(file, "contains no request: a trace has one line for each")
    return _in_order(rows, file=file)


def _in_order(rows: list[_Row], *, file: str) -> Recorded:
    rows.sort(key=itemgetter(0))
    begin_us, end_us = rows[0][0], rows[-1][0]
    if end_us - begin_us > _MOST_SECONDS * 1_000_000:
        return _refuse(file, "spans more than 366 days: are all times of the same clock and unit?")
    return Recorded(
        trace=tuple(
            TraceEntry(
                offset_ms=round((at_us - begin_us) / 1e6 * 1000), prompt_tokens=prompt, output_tokens=output
            )
            for at_us, prompt, output in rows
        )
    )


def _row(names: tuple[str, ...], moment_us: Callable[[object], int], cells: list[Any]) -> _Row | str:
    """Return the numbers of a line, or a message with all of its problems."""
    wrong = []
    values: list[int] = []
    for name, read, value in zip(names, (moment_us, _tokens, _tokens), cells, strict=True):
        try:
            values.append(read(value))
        except (ValueError, OverflowError, TypeError) as error:
            wrong.append(f"{name} {_text(value)} {error}")
    if wrong:
        return "; ".join(wrong)
    moment_value, prompts, outputs = values
    return moment_value, prompts, outputs


def _text(value: object) -> str:
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


def _refuse(file: str, text: str) -> Recorded:
    return Recorded(problems=(f"{file}: {text}",))
