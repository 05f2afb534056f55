"""Text for terminals, rendered by rich: it fits the width, and contains no control characters from input."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from apiserver.schema.json import Json
from controller.commands.check.yaml_values import as_yaml

_STEERING: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_STEERING_IN_JSON: Final = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""The same without what JSON escapes itself."""

_THEME: Final = Theme(
    {"heading": "bold", "faint": "dim", "good": "green", "bad": "red", "advice": "yellow"}, inherit=False
)
_COLUMNS_OF_A_FILE: Final = 120
_FEWEST_COLUMNS: Final = 60
_WIDEST: Final = 10_000
_GAP: Final = 2


class Tone(StrEnum):
    """The meaning of a piece of text; the value is its style in a terminal and its class on a page."""

    PLAIN = ""
    HEADING = "heading"
    FAINT = "faint"
    GOOD = "good"
    BAD = "bad"
    ADVICE = "advice"


def harmless(text: str) -> str:
    """Return text with control and invisible formatting characters replaced."""
    return _STEERING.sub("\ufffd", text)


def price(amount: Decimal) -> str:
    """Return an amount of money without trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def wrapping_text(text: str, style: str = "") -> Text:
    """Return a piece of text that wraps if it is too long."""
    return Text(harmless(text), style=style)


def labelled_line(label: str | Text, text: str, tone: Tone = Tone.PLAIN) -> Table:
    """Return text after a label, with its further lines indented like the first one."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(wrapping_text(label, tone) if isinstance(label, str) else label, wrapping_text(text, tone))
    return grid


def table(heads: Sequence[str], *, words: Collection[str], wrapped: Collection[str] = ()) -> Table:
    """Return an empty table: columns in `words` are left-aligned, others right; `wrapped` ones may wrap."""
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style=Tone.HEADING)
    for head in heads:
        made.add_column(
            head,
            justify="left" if head in words else "right",
            no_wrap=head not in wrapped,
            overflow="fold",
        )
    return made


def fitting_heads(
    rows: Sequence[Mapping[str, str]],
    columns: int,
    *,
    droppable: Sequence[str],
    least_width: Mapping[str, int],
) -> Sequence[str]:
    """Return the heads of the columns that fit; none without rows.

    `droppable` ones are left out, in this order; `least_width` is that of columns that may wrap.
    """
    if not rows:
        return ()
    widths = {
        head: min(max(cell_len(row[head]) for row in [*rows, {head: head}]), least_width.get(head, columns))
        for head in rows[0]
    }
    for head in droppable:
        if sum(widths.values()) + _GAP * (len(widths) - 1) > columns:
            widths.pop(head, None)
    return [*widths]


def uncut(made: Table) -> Table:
    """Return a table as wide as its cells, so that a narrow terminal wraps lines and nothing is cut."""
    console = Console(width=_WIDEST, theme=_THEME)
    made.width = console.measure(made).maximum
    return made


def terminal(columns: int | None = None) -> Console:
    """Return a console for standard output, with colours if that is a terminal and NO_COLOR is not set."""
    if columns is None:
        columns = max(_FEWEST_COLUMNS, shutil.get_terminal_size((_COLUMNS_OF_A_FILE, 0)).columns)
    return Console(file=sys.stdout, width=columns, theme=_THEME, markup=False, emoji=False, highlight=False)


def print_lines(parts: Iterable[RenderableType], console: Console) -> str:
    """Return the lines that a console would print, without trailing blanks."""
    with console.capture() as captured:
        for part in parts:
            console.print(part, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().split("\n")[:-1])


def present(output: str, document: Callable[[], Json], parts: Iterable[RenderableType]) -> None:
    """Print a document as `json` or `yaml`, or the parts of a `table`, to standard output."""
    match output:
        case "json":
            text = json.dumps(document(), indent=2, ensure_ascii=False)
            sys.stdout.write(_STEERING_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
        case "yaml":
            sys.stdout.write(_STEERING_IN_JSON.sub("\ufffd", as_yaml(document())))
        case _:
            show(parts)
    sys.stdout.flush()


def write_file(path: Path, content: bytes) -> str:
    """Write a file besides the output; return why it cannot be written, or nothing."""
    try:
        path.write_bytes(content)
    except OSError as error:
        return f"cannot be written: {error.strerror or error}"
    return ""


def show(parts: Iterable[RenderableType]) -> None:
    """Print to standard output."""
    sys.stdout.write(print_lines(parts, terminal()))
