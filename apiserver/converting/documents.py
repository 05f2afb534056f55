"""A file's text, converted: the documents that change are edited, all others keep every byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from apiserver.checking.documents import read_documents
from apiserver.checking.objects import as_yaml
from apiserver.checking.tree import Tree, UnreadableError
from apiserver.converting.objects import Convert, Told, UnknownVersionError
from apiserver.converting.splice import UnspliceableError, spliced
from apiserver.schema.json import JsonValue
from apiserver.schema.undecoded import same

_SEPARATOR: Final = re.compile(r"^(---[^\n]*\n?)", re.MULTILINE)
_MARKS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """What a reader should know about a line of the file."""

    line: int
    text: str


@dataclass(kw_only=True, slots=True)
class ConvertedFile:
    """A file after conversion: its text before and after, its values, and what was noticed, in order.

    `found` counts the objects that convert; `problems` is empty unless something could not be read.
    """

    before: str = ""
    after: str = ""
    encoding: str = "utf-8"
    found: int = 0
    values: list[JsonValue] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    problems: list[Note] = field(default_factory=list)


def convert_file(data: bytes, convert: Convert) -> ConvertedFile:
    """Return a file with each of its documents converted; never raises on what a file may hold."""
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
    values = [_value(tree, line + tree.line - 1, convert, file) for tree in trees]
    file.values += values
    if all(same(tree.value, value) for tree, value in zip(trees, values, strict=True)):
        return text
    if text.lstrip().startswith("{") and _is_json(text):
        return _as_json(text, values)
    edited = _edited(text, trees[0].value, values[0])
    if edited is not None:
        return edited
    note = "written anew, without its comments: it has anchors, or a form that cannot be edited in place"
    file.notes.append(Note(line=line + trees[0].line - 1, text=note))
    return as_yaml(values[0]).removeprefix("---\n")


def _value(tree: Tree, line: int, convert: Convert, file: ConvertedFile) -> JsonValue:
    try:
        converted = convert(tree.value)
    except UnknownVersionError as error:
        file.problems.append(Note(line=line, text=str(error)))
        return tree.value
    file.found += converted.found
    file.notes += [Note(line=line + _lines_down(tree, note), text=note.text) for note in converted.notes]
    return converted.value


def _lines_down(tree: Tree, note: Told) -> int:
    if note.item is None:
        return 0
    return tree.marks_of(tree.value["items"]).lines[note.item] - tree.line


def _edited(text: str, old: JsonValue, new: JsonValue) -> str | None:
    try:
        edited = spliced(text, old, new)
    except UnspliceableError:
        return None
    again = list(read_documents(edited.encode()))
    is_right = len(again) == 1 and isinstance(again[0], Tree) and same(again[0].value, new)
    return edited if is_right else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _as_json(text: str, values: list[JsonValue]) -> str:
    indented = re.search(r"\n([ \t]+)\"", text)
    indent = indented.group(1) if indented else None
    return "\n".join(json.dumps(value, indent=indent, ensure_ascii=False) for value in values) + "\n"
