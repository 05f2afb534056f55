"""Conversion of the text of a file: changed documents are edited, all others are preserved byte by byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from apiserver.checking.documents import read_documents
from apiserver.checking.objects import as_yaml
from apiserver.checking.strictness import duplicates
from apiserver.checking.tree import MOST_LEVELS, Tree, UnreadableError
from apiserver.converting.json_documents import json_spans, rewritten
from apiserver.converting.objects import Convert, Told, UnknownVersionError
from apiserver.converting.splice import Spliced, Uncommented, UnspliceableError, newline_of, spliced
from apiserver.schema.json import JsonValue, same
from apiserver.schema.paths import FieldPath

_SEPARATOR: Final = re.compile(r"^(---[^\n]*\n?)", re.MULTILINE)
_MARKER: Final = re.compile(r"[\r\x85\u2028\u2029]---")
"""A separator after a line break that only YAML recognizes as one."""
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
    file.after = "".join(_converted(file.before, convert, file))
    return file


def _converted(text: str, convert: Convert, file: ConvertedFile) -> Iterator[str]:
    line = 1
    for part in _SEPARATOR.split(text):
        yield part if part.startswith("---") else _part(part, line, convert, file)
        line += part.count("\n")


def _part(text: str, line: int, convert: Convert, file: ConvertedFile) -> str:
    trees = [tree for tree in read_documents(text.encode()) if isinstance(tree, Tree)]
    spans = json_spans(text)
    if spans is None and (down := _lines_to_second(text)) is not None:
        file.problems.append(
            Note(line=line + down, text="a second document: insert a line with --- before it")
        )
        return text
    values = [_value(tree, line + tree.line - 1, convert, file) for tree in trees]
    file.values += values
    if all(same(tree.value, value) for tree, value in zip(trees, values, strict=True)):
        return text
    if spans is None:
        return _yaml(text, line, trees[0], values[0], file)
    result = rewritten(text, spans, [tree.value for tree in trees], values)
    lines = dict.fromkeys(line + text.count("\n", 0, span.start) for span in result.restyled)
    file.notes += [Note(line=restyled, text=_RESTYLED) for restyled in lines]
    return result.text


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
    edited = _edited(text, tree.value, value)
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
            if _is_in_changes(error.path, tree.value, converted.value)
        ]
    file.found += converted.found
    file.notes += [Note(line=line + _lines_down(tree, note), text=note.text) for note in converted.notes]
    return converted.value


def _is_in_changes(path: FieldPath, old: JsonValue, new: JsonValue) -> bool:
    """Tell whether a field is in what conversion may change: other items of a list stay as they are."""
    if path.parts[:1] != ("items",) or len(path.parts) == 1:
        return True
    position = path.parts[1]
    return not same(old["items"][position], new["items"][position])


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


def _edited(text: str, old: JsonValue, new: JsonValue) -> Spliced | None:
    try:
        edited = spliced(text, old, new)
    except UnspliceableError:
        return None
    again = list(read_documents(edited.text.encode()))
    is_right = len(again) == 1 and isinstance(again[0], Tree) and same(again[0].value, new)
    return edited if is_right else None
