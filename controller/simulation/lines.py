"""Recorded data with one entry per line: CSV that begins with the names of its columns, or JSON objects."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Entry = tuple[int, list[Any] | str]
"""The number of a line, and its values, or what is wrong with it."""


def is_json(text: str) -> bool:
    """Return whether the lines are JSON objects, by the first character."""
    return text.lstrip().startswith("{")


def entries(text: str, names: Sequence[str]) -> Iterator[Entry]:
    """Yield the values with the given names in each line that is not empty."""
    lines = text.splitlines()
    return _of_json(lines, names) if is_json(text) else _of_csv(lines, names)


def _of_csv(lines: list[str], names: Sequence[str]) -> Iterator[Entry]:
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
    except (StopIteration, csv.Error):
        header = []
    if missing := [name for name in names if name not in header]:
        yield 1, f"column {', '.join(missing)} is missing: the first line must be {','.join(names)}"
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


def _of_json(lines: list[str], names: Sequence[str]) -> Iterator[Entry]:
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
            yield number, f"{', '.join(missing)} is missing"
        else:
            yield number, [value[name] for name in names]
