"""Conversion of the text of a file: changed documents are edited, all others are preserved byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from apiserver.schema.json import JsonValue, same
from controller.commands.check.documents import read_documents
from controller.commands.check.json_text import after_space, end_of_value
from controller.commands.check.objects import as_yaml
from controller.commands.check.strictness import duplicates
from controller.commands.check.tree import MOST_LEVELS, Tree, UnreadableError
from controller.commands.convert.objects import Convert, Told, UnknownVersionError
from controller.commands.convert.splice import Spliced, Uncommented, UnspliceableError, newline_of, splice

_SEPARATOR: Final = re.compile(r"^(---[^\n]*\n?)", re.MULTILINE)
_MARKER: Final = re.compile(r"[\r\x85\u2028\u2029]---")
"""A separator after a line break that only YAML recognizes as one."""
_INDENT: Final = re.compile(r"[\[{]\r?\n([ \t]*)")
_RESTYLED: Final = "numbers and spacing are reformatted; numbers of more than 15 digits lose the further ones"
_MARKS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A note on a line of the file."""

    line: int
    text: str


@dataclass(kw_only=True, slots=True)
class ConvertedFile:
    """A file after conversion: its text before and after, its values, and notes in order.

    `found` counts the convertible objects; `problems` is empty unless something could not be read.
    """

    before: str = ""
    after: str = ""
    encoding: str = "utf-8"
    found: int = 0
    values: list[JsonValue] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    problems: list[Note] = field(default_factory=list)


def convert_file(data: bytes, convert: Convert) -> ConvertedFile:
    """Return a file with each of its documents converted; never raises, whatever its content."""
    file = ConvertedFile(encoding=next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8"))
    file.problems = [
        Note(line=document.line, text=document.message)
        for document in read_documents(data)
        if isinstance(document, UnreadableError)
    ]
    if file.problems:
        return file
    file.before = data.decode(file.encoding)
    file.after = "".join(_convert_parts(file.before, convert, file))
    return file


def _convert_parts(text: str, convert: Convert, file: ConvertedFile) -> Iterator[str]:
    line = 1
    for part in _SEPARATOR.split(text):
        yield part if part.startswith("---") else _part(part, line, convert, file)
        line += part.count("\n")


def _part(text: str, line: int, convert: Convert, file: ConvertedFile) -> str:
    trees = [tree for tree in read_documents(text.encode()) if isinstance(tree, Tree)]
    spans = _json_spans(text)
    if spans is None and (down := _lines_to_second(text)) is not None:
        file.problems.append(
            Note(line=line + down, text="a second document: insert a line with --- before it")
        )
        return text
    values = [_value(tree, line + tree.line - 1, convert, file) for tree in trees]
    file.values += values
    if file.problems or all(same(tree.value, value) for tree, value in zip(trees, values, strict=True)):
        return text
    if spans is None:
        return _yaml(text, line, trees[0], values[0], file)
    pieces, place = [], 0
    for (start, end), tree, value in zip(spans, trees, values, strict=True):
        if same(tree.value, value):
            continue
        was = text[start:end]
        if _json(tree.value, was) != was:
            file.notes.append(Note(line=line + text.count("\n", 0, start), text=_RESTYLED))
        pieces += [text[place:start], _json(value, was)]
        place = end
    return "".join([*pieces, text[place:]])


def _json_spans(text: str) -> list[tuple[int, int]] | None:
    """Return the begin and end of each JSON value in a text, except null; None if it is not JSON."""
    if not text.lstrip().startswith("{"):
        return None
    spans: list[tuple[int, int]] = []
    place = after_space(text, 0)
    try:
        while place < len(text):
            spans.append((place, end_of_value(text, place)))
            place = after_space(text, spans[-1][1])
    except ValueError:
        return None
    return [(start, end) for start, end in spans if text[start:end] != "null"]


def _json(value: JsonValue, former: str) -> str:
    """Return a value as JSON, with the indentation and line endings of its former text."""
    indented = _INDENT.search(former)
    text = json.dumps(value, indent=indented.group(1) if indented else None, ensure_ascii=False)
    return text.replace("\n", newline_of(former))


def _lines_to_second(text: str) -> int | None:
    """Return the line, counted from 0, on which a second document begins; None if there is only one."""
    if not _MARKER.search(text):
        return None
    starts = [
        event.start_mark
        for event in yaml.parse(text, Loader=yaml.CSafeLoader)
        if isinstance(event, yaml.DocumentStartEvent) and event.start_mark
    ]
    return starts[1].line if len(starts) > 1 else None


def _yaml(text: str, line: int, tree: Tree, value: JsonValue, file: ConvertedFile) -> str:
    edited = _edit(text, tree.value, value)
    if edited is not None:
        file.notes += [_farewell(line, part) for part in edited.uncommented]
        return edited.text
    note = "rewritten without its comments: it has anchors, or a form that cannot be edited in place"
    file.notes.append(Note(line=line + tree.line - 1, text=note))
    return as_yaml(value).removeprefix("---\n").replace("\n", newline_of(text))


def _farewell(line: int, part: Uncommented) -> Note:
    count = f"{part.comments} comment{'s' if part.comments > 1 else ''}"
    return Note(line=line + part.lines_above, text=f"{count} lost with {part.path or 'the whole document'}")


def _value(tree: Tree, line: int, convert: Convert, file: ConvertedFile) -> JsonValue:
    if _is_too_deep(tree.value):
        file.problems.append(Note(line=line, text=f"nested deeper than {MOST_LEVELS} levels by its aliases"))
        return tree.value
    try:
        converted = convert(tree.value)
    except UnknownVersionError as error:
        file.problems.append(Note(line=line, text=str(error)))
        return tree.value
    if converted.found:
        file.problems += [
            Note(line=line - tree.line + error.line, text=f"{error}: keep one of them")
            for error in duplicates(tree)
        ]
    file.found += converted.found
    file.notes += [Note(line=line + _lines_down(tree, note), text=note.text) for note in converted.notes]
    return converted.value


def _is_too_deep(value: JsonValue) -> bool:
    """Tell whether aliases nest a value too deeply to be written out, or to be processed recursively."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        inner = [item for outer in level for item in _items(outer) if isinstance(item, dict | list)]
        level = list({id(item): item for item in inner}.values())
    return bool(level)


def _items(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _lines_down(tree: Tree, note: Told) -> int:
    if note.item is None:
        return 0
    return tree.marks_of(tree.value["items"]).lines[note.item] - tree.line


def _edit(text: str, old: JsonValue, new: JsonValue) -> Spliced | None:
    try:
        edited = splice(text, old, new)
    except UnspliceableError:
        return None
    again = list(read_documents(edited.text.encode()))
    is_right = len(again) == 1 and isinstance(again[0], Tree) and same(again[0].value, new)
    return edited if is_right else None
