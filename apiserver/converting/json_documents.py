"""Edits of a text of consecutive JSON documents: only changed values are written, in their former style."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from apiserver.checking.json_text import after_space, end_of_value
from apiserver.schema.json import JsonValue, same

_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_INDENT: Final = re.compile(r"[\[{]\r?\n([ \t]*)")
_NULL: Final = "null"
_EMPTY: Final = frozenset({"{}", "[]"})


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
class _Change:
    span: Span
    was: JsonValue
    now: JsonValue


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
    spans: list[Span] = []
    place = after_space(text, 0)
    try:
        while place < len(text):
            spans.append(Span(start=place, end=end_of_value(text, place)))
            place = after_space(text, spans[-1].end)
    except ValueError:
        return None
    return [span for span in spans if text[span.start : span.end] != _NULL]


def rewritten(text: str, spans: list[Span], old: list[JsonValue], new: list[JsonValue]) -> Rewritten:
    """Return a text with the values at some positions replaced where they differ."""
    pieces, place, restyled = [], 0, []
    for document, was, now in zip(spans, old, new, strict=True):
        whole = _style(text[document.start : document.end])
        for change in _changes(text, _Change(span=document, was=was, now=now)):
            span = change.span
            style = whole if span == document else _style_within(text, span, whole)
            if style.written(change.was) != text[span.start : span.end]:
                restyled.append(span)
            pieces += [text[place : span.start], style.written(change.now)]
            place = span.end
    return Rewritten(text="".join([*pieces, text[place:]]), restyled=tuple(restyled))


def _changes(text: str, change: _Change) -> Iterator[_Change]:
    """Yield the smallest changes in order: an object that gains or loses members changes as a whole."""
    was, now = change.was, change.now
    if same(was, now):
        return
    inner: dict[Any, Span] = {}
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        inner = _inner(text, change.span)
        inner = inner if inner.keys() == was.keys() else {}
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        inner = _inner(text, change.span)
    if not inner:
        yield change
    for key, span in inner.items():
        yield from _changes(text, _Change(span=span, was=was[key], now=now[key]))


def _inner(text: str, span: Span) -> dict[Any, Span]:
    """Return the positions of the members of a JSON object by name, or of the items of a list."""
    found: dict[Any, Span] = {}
    is_object = text[span.start] == "{"
    place = after_space(text, span.start + 1)
    while text[place] not in "]}":
        key: JsonValue = len(found)
        if is_object:
            end = end_of_value(text, place)
            key = json.loads(text[place:end])
            place = after_space(text, after_space(text, end) + len(":"))
        end = end_of_value(text, place)
        found[key] = Span(start=place, end=end)
        place = after_space(text, end)
        if text[place] == ",":
            place = after_space(text, place + 1)
    return found


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


def _style_within(text: str, span: Span, whole: _Style) -> _Style:
    """Return the style of a value within a document, whose lines have the indentation of its first line."""
    given = text[span.start : span.end]
    line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    margin = line[: len(line) - len(line.lstrip())]
    own = _style(given) if given[0] in "{[" and given not in _EMPTY else whole
    return replace(
        whole,
        indent=None if own.indent is None else whole.indent,
        separators=own.separators,
        newline=whole.newline + margin,
    )
