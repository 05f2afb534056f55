"""Formatting of an event, with any content, as one line: JSON, or text for a console. Pure functions."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Event = dict[str, Any]
"""The members of a log call, with values of any type."""

_FIRST = ("time", "level", "logger", "event")
_TEXT_LIMIT = 8192
_EXCEPTION_LIMIT = 32_768
_ITEM_LIMIT = 100
_DEPTH_LIMIT = 6
_COLOURS = {"debug": 90, "info": 32, "warning": 33, "error": 31, "critical": 41}


def json_line(event: Event) -> str:
    """Return an event as one line of ASCII JSON; large parts are truncated, other types described."""
    exception = event.pop("exception", None)
    record = {name: event.pop(name) for name in _FIRST if name in event} | event
    plain = {_text(name): _plain(value, _DEPTH_LIMIT) for name, value in record.items()}
    if exception is not None:
        plain["exception"] = _tail(str(exception))
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def console_line(event: Event, *, colour: bool) -> str:
    """Return an event as text: time, level, sentence and `name=value` pairs, then any traceback."""
    exception = event.pop("exception", None)
    level = str(event.pop("level", "info"))
    event.pop("logger", None)
    clock = str(event.pop("time", ""))[11:23]
    sentence = _printable(_text(event.pop("event", "")))
    label = f"{level:<8}"
    if colour:
        label, sentence = f"\x1b[{_COLOURS.get(level, 0)}m{label}\x1b[0m", f"\x1b[1m{sentence}\x1b[0m"
    members = [f"{_printable(_text(name))}={_word(value)}" for name, value in event.items()]
    lines = [" ".join([clock, label, sentence, *members])]
    if exception is not None:
        lines += ["  " + _printable(line) for line in _tail(str(exception)).splitlines()]
    return "\n".join(lines)


def _plain(value: object, depth: int) -> object:
    """Return a value reduced to JSON types and bounded size."""
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or value.bit_length() <= 64 else _text(value)  # noqa: PLR2004
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > 0 and isinstance(value, dict):
        return _plain_members(value, depth - 1)
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        items = list(value)
        rest = [f"… {len(items) - _ITEM_LIMIT} more"] if len(items) > _ITEM_LIMIT else []
        return [*(_plain(item, depth - 1) for item in items[:_ITEM_LIMIT]), *rest]
    return _text(value)


def _plain_members(members: Mapping[object, object], depth: int) -> dict[str, object]:
    names = list(members)
    plain = {_text(name): _plain(members[name], depth) for name in names[:_ITEM_LIMIT]}
    if len(names) > _ITEM_LIMIT:
        plain["…"] = f"{len(names) - _ITEM_LIMIT} more"
    return plain


def _text(value: object) -> str:
    """Return a value as text of bounded size, even if its `repr` raises."""
    if isinstance(value, str):
        text = str.__str__(value)
    else:
        try:
            text = repr(value)
        except Exception as error:  # noqa: BLE001 (logging must not fail because of a value)
            text = f"<{type(value).__name__}: repr raised {type(error).__name__}>"
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}… {len(text) - _TEXT_LIMIT} more"


def _tail(exception: str) -> str:
    """Return the end of a long traceback, which contains the error."""
    if len(exception) <= _EXCEPTION_LIMIT:
        return exception
    return f"… {len(exception) - _EXCEPTION_LIMIT} before\n{exception[-_EXCEPTION_LIMIT:]}"


def _word(value: object) -> str:
    plain = _plain(value, _DEPTH_LIMIT)
    if isinstance(plain, str) and plain and plain.isprintable() and not set(plain) & set(" =\"'"):
        return plain
    return json.dumps(plain, ensure_ascii=not str(plain).isprintable())


def _printable(text: str) -> str:
    """Return text with characters escaped that would move the cursor, end the line or change colors."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
