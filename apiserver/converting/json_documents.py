"""Edits of a text of consecutive JSON documents; changed values keep their formatting style."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, NoReturn

from apiserver.schema.json import JsonValue
from apiserver.schema.undecoded import same

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_INDENT: Final = re.compile(r"[\[{]\r?\n([ \t]*)")
_NULL: Final = "null"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The position of a JSON value in a text."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewritten:
    """A text after its edits, and the values whose numbers or spacing changed."""

    text: str
    restyled: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Style:
    indent: str | None
    separators: tuple[str, str]
    newline: str
    is_ascii: bool

    def written(self, value: JsonValue) -> str:
        text = json.dumps(value, indent=self.indent, separators=self.separators, ensure_ascii=self.is_ascii)
        return text.replace("\n", self.newline)


def json_spans(text: str) -> list[Span] | None:
    """Return the positions of the values in JSON text, except null; None if it is not JSON."""
    if not text.lstrip().startswith("{"):
        return None
    decode = json.JSONDecoder(parse_constant=_no_constant, parse_int=float).raw_decode
    spans: list[Span] = []
    place = _after_space(text, 0)
    try:
        while place < len(text):
            spans.append(Span(start=place, end=decode(text, place)[1]))
            place = _after_space(text, spans[-1].end)
    except ValueError:
        return None
    return [span for span in spans if text[span.start : span.end] != _NULL]


def rewritten(text: str, spans: list[Span], old: list[JsonValue], new: list[JsonValue]) -> Rewritten:
    """Return a text with the values at some positions replaced where they differ."""
    pieces, place, restyled = [], 0, []
    for span, was, now in zip(spans, old, new, strict=True):
        if same(was, now):
            continue
        given = text[span.start : span.end]
        style = _style(given)
        if style.written(was) != given:
            restyled.append(span)
        pieces += [text[place : span.start], style.written(now)]
        place = span.end
    return Rewritten(text="".join([*pieces, text[place:]]), restyled=tuple(restyled))


def _style(given: str) -> _Style:
    bare = _TEXT.sub('""', given)
    indented = _INDENT.search(bare)
    item = "," if indented or ", " not in bare else ", "
    return _Style(
        indent=indented.group(1) if indented else None,
        separators=(item, ": " if ": " in bare else ":"),
        newline="\r\n" if "\r\n" in given else "\n",
        is_ascii=given.isascii() and "\\u" in given,
    )


def _after_space(text: str, begin: int) -> int:
    found = _SPACE.match(text, begin)
    assert found is not None, "the pattern matches nothing as well"
    return found.end()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no number {name}")
