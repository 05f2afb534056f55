"""Lines of text with tones, and how they fit a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from textwrap import wrap
from typing import Final

_STEERING: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_PALETTE: Final = ("36", "35", "34", "32", "33", "96", "95", "94", "92", "93")
_ELLIPSIS: Final = "…"


class Tone(StrEnum):
    """How a piece of text is meant; the value is the parameter of its colour."""

    PLAIN = ""
    HEADING = "1"
    FAINT = "2"
    GOOD = "32"
    BAD = "31"
    ADVICE = "33"


Span = tuple[str, str]
"""A colour's parameter, or an empty text, and what is written in it."""

Spans = tuple[Span, ...]


def spans(*parts: Span | str) -> Spans:
    """Return a line of pieces; bare text is plain."""
    return tuple((Tone.PLAIN.value, part) if isinstance(part, str) else part for part in parts)


def printed(line: Iterable[Span], *, is_coloured: bool) -> str:
    """Return a line as it is printed. Nothing that a file says can steer a terminal."""
    pieces = ((colour, harmless(text)) for colour, text in line)
    return "".join(f"\x1b[{c}m{text}\x1b[0m" if is_coloured and c else text for c, text in pieces).rstrip()


def harmless(text: str) -> str:
    """Return text without what steers a terminal or hides in a line."""
    return _STEERING.sub("\ufffd", text)


def colour_of(code: str) -> str:
    """Return the colour in which a variant's code is drawn."""
    return _PALETTE[
        sum(ord(letter) * 53**place for place, letter in enumerate(reversed(code))) % len(_PALETTE)
    ]


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def cut(text: str, columns: int) -> str:
    """Return a text that takes so many columns at most."""
    if width_of(text) <= columns:
        return text
    while text and width_of(text) > columns - 1:
        text = text[:-1]
    return text + _ELLIPSIS if columns > 0 else ""


def cut_front(text: str, columns: int) -> str:
    """Return a text that takes so many columns at most, its end kept: there names differ."""
    return cut(text[::-1], columns)[::-1]


def padded(text: str, columns: int, *, to_the_right: bool = False) -> str:
    """Return a text that takes so many columns exactly."""
    text = cut(text, columns)
    space = " " * (columns - width_of(text))
    return space + text if to_the_right else text + space


def wrapped(text: str, columns: int, *, first: str = "", later: str = "") -> Sequence[str]:
    """Return a text in lines of so many columns at most, with something before the first and the others."""
    room = max(20, columns)
    return wrap(
        harmless(text), room, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    ) or [first]
