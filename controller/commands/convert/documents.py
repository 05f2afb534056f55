"""Conversion of the text of a file: changed documents are edited, all others are preserved byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from apiserver.schema.json import Json, JsonValue, same
from controller.commands.check.documents import JsonSyntaxError, json_spans, read_documents
from controller.commands.check.matching import duplicates
from controller.commands.check.tree import MOST_LEVELS, Tree, UnreadableError
from controller.commands.check.yaml_values import as_yaml
from controller.commands.convert.objects import Conversion, ObjectNote, UnknownVersionError
from controller.commands.convert.splice import (
    Spliced,
    UnspliceableError,
    comment_places,
    newline_of,
    splice,
)

Convert: TypeAlias = Callable[[JsonValue], Conversion]
"""A function from a value to its conversion."""

_SEPARATOR: Final = re.compile(r"^(---[^\n]*\n?)", re.MULTILINE)
_FIRST_INDENT: Final = re.compile(r"[\[{]\r?\n([ \t]*)")
_INDENT: Final = re.compile(r"^ +", re.MULTILINE)
_COMPACT: Final = -1
_ONE_LINE: Final = 0
_MARKS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True, kw_only=True, slots=True)
class LineNote:
    """A note on a line of the file."""

    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePart:
    """The text after one separator, the line where it begins in the file, and its documents."""

    separator: str
    text: str
    line: int
    trees: tuple[Tree, ...]


@dataclass(kw_only=True, slots=True)
class ConvertedFile:
    """A file after conversion: its text before and after, its values, and notes in order.

    `count` is the number of convertible objects; `problems` is empty unless something could not be read.
    """

    parts: tuple[FilePart, ...] = ()
    before: str = ""
    after: str = ""
    encoding: str = "utf-8"
    count: int = 0
    values: list[JsonValue] = field(default_factory=list)
    notes: list[LineNote] = field(default_factory=list)
    problems: list[LineNote] = field(default_factory=list)


def convert_file(data: bytes, convert: Convert) -> ConvertedFile:
    """Return a file with each of its documents converted; never raises, whatever its content."""
    file = read_file(data)
    edit_file(file, convert)
    return file


def read_file(data: bytes) -> ConvertedFile:
    """Return a file with its documents, before conversion; `problems` says what cannot be read."""
    file = ConvertedFile(encoding=next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8"))
    file.problems = [
        LineNote(line=document.line, text=document.message)
        for document in read_documents(data)
        if isinstance(document, UnreadableError)
    ]
    if file.problems:
        return file
    file.before = data.decode(file.encoding)
    file.parts = tuple(_parts(file.before))
    for part in file.parts:
        file.problems += [
            LineNote(
                line=part.line + tree.line - 1, text=f"nested deeper than {MOST_LEVELS} levels by its aliases"
            )
            for tree in part.trees
            if _is_too_deep(tree.value)
        ]
    return file


def _parts(text: str) -> Iterator[FilePart]:
    line, separator = 1, ""
    for piece in _SEPARATOR.split(text):
        if piece.startswith("---"):
            separator = piece
        else:
            trees = tuple(tree for tree in read_documents(piece.encode()) if isinstance(tree, Tree))
            yield FilePart(separator=separator, text=piece, line=line, trees=trees)
        line += piece.count("\n")


def edit_file(file: ConvertedFile, convert: Convert) -> None:
    """Convert the documents of a file that was read without problems: its text, values and notes."""
    if file.problems:
        file.after = file.before
        return
    file.after = "".join(_convert_part(part, convert, file) for part in file.parts)


def _convert_part(part: FilePart, convert: Convert, file: ConvertedFile) -> str:
    """Return the text of a part after conversion, with its separator unless nothing is left of it."""
    conversions = [_convert_tree(tree, part.line + tree.line - 1, convert, file) for tree in part.trees]
    file.values += [value for conversion in conversions for value in conversion.values]
    added = [value for conversion in conversions for value in conversion.added]
    text = _edit_part(part, conversions, file)
    if not text.strip() and part.text.strip() and not added:
        return ""
    return f"{part.separator}{text}{_added_text(text, part.text, added)}"


def _added_text(text: str, former: str, added: Sequence[Json]) -> str:
    """Return the text of new documents after a part, in the format of the part."""
    if not added:
        return ""
    newline = newline_of(former)
    render = as_yaml if _json_spans(former) is None else _indented_json
    pieces = map(render, added)
    begin = "" if text.endswith("\n") or not text else "\n"
    return f"{begin}{''.join(pieces)}".replace("\n", newline)


def _indented_json(value: Json) -> str:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"


def _edit_part(part: FilePart, conversions: Sequence[Conversion], file: ConvertedFile) -> str:
    """Return the text between two separators with each of its documents edited, or removed."""
    text, line = part.text, part.line
    pairs = [(tree, it.value) for tree, it in zip(part.trees, conversions, strict=True)]
    if file.problems or all(same(tree.value, value) for tree, value in pairs):
        return text
    spans = _json_spans(text)
    if spans is None:
        return _edit_yaml(text, line, *pairs[0], file)
    pieces, place = [], 0
    for (start, end), (tree, value) in zip(spans, pairs, strict=True):
        if same(tree.value, value):
            continue
        after, note = ("", "") if value is None else _edit_json(text[start:end], tree.value, value)
        if note:
            file.notes.append(LineNote(line=line + text.count("\n", 0, start), text=note))
        pieces += [text[place:start], after]
        place = end
    return "".join([*pieces, text[place:]])


def _convert_tree(tree: Tree, line: int, convert: Convert, file: ConvertedFile) -> Conversion:
    try:
        conversion = convert(tree.value)
    except UnknownVersionError as error:
        file.problems.append(LineNote(line=line, text=str(error)))
        return Conversion(value=tree.value, count=0)
    if conversion.count:
        file.problems += [
            LineNote(line=line - tree.line + error.line, text=f"{error.message}: keep one of them")
            for error in duplicates(tree)
        ]
    file.count += conversion.count
    file.notes += [LineNote(line=line + _lines_down(tree, note), text=note.text) for note in conversion.notes]
    return conversion


def _is_too_deep(value: JsonValue) -> bool:
    """Tell whether aliases nest a value too deeply to be written out, or to be processed recursively."""
    level, depth = [value], 0
    while level and depth <= MOST_LEVELS:
        inner = [item for outer in level for item in _items(outer) if isinstance(item, dict | list)]
        level, depth = list({id(item): item for item in inner}.values()), depth + 1
    return bool(level)


def _items(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _lines_down(tree: Tree, note: ObjectNote) -> int:
    if note.item is None:
        return 0
    return tree.marks_of(tree.value["items"]).lines[note.item] - tree.line


def _json_spans(text: str) -> list[tuple[int, int]] | None:
    """Return the begin and end of each JSON value in a text, except null; None if it is not JSON."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return [(start, end) for start, end in json_spans(text) if text[start:end] != "null"]
    except JsonSyntaxError:
        return None


def _edit_json(text: str, old: JsonValue, new: JsonValue) -> tuple[str, str]:
    """Return JSON text with the new value, in the style of the old one, and a note if that is impossible.

    Unchanged values, such as numbers of many digits, keep their text.
    """
    try:
        is_restyled = _like(text, text) != text
        after = msgspec.json.encode(_with_text(msgspec.Raw(text), old, new)).decode()
        return _like(after, text), "spacing is reformatted" if is_restyled else ""
    except msgspec.DecodeError:
        # Half of a surrogate pair is JSON, but not for this library.
        return json.dumps(new, ensure_ascii=False), "numbers and spacing are reformatted"


def _with_text(text: msgspec.Raw, old: JsonValue, new: JsonValue) -> JsonValue:
    """Return the new value of some JSON text, in which unchanged parts are their text."""
    if same(old, new):
        return text
    if isinstance(old, dict) and isinstance(new, dict):
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return {
            name: _with_text(members[name], old[name], item) if name in old else item
            for name, item in new.items()
        }
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        parts = zip(msgspec.json.decode(text, type=list[msgspec.Raw]), old, new, strict=True)
        return [_with_text(*part) for part in parts]
    return new


def _like(text: str, former: str) -> str:
    """Return JSON text with the spacing, indentation and line endings of some former text."""
    indented = _FIRST_INDENT.search(former)
    if indented is None:
        is_compact = msgspec.json.format(former, indent=_COMPACT) == former
        return msgspec.json.format(text, indent=_COMPACT if is_compact else _ONE_LINE)
    spaced = msgspec.json.format(text, indent=1)
    unit = indented.group(1)
    return _INDENT.sub(lambda spaces: unit * len(spaces.group()), spaced).replace("\n", newline_of(former))


def _edit_yaml(text: str, line: int, tree: Tree, value: JsonValue, file: ConvertedFile) -> str:
    if value is None:
        if count := len(list(comment_places(text))):
            comments = f"{count} comment{'s' if count > 1 else ''}"
            file.notes.append(LineNote(line=line + tree.line - 1, text=f"{comments} lost with the document"))
        return ""
    edited = _splice(text, tree.value, value)
    if edited is None:
        note = "rewritten without its comments: it has anchors, or a form that cannot be edited in place"
        file.notes.append(LineNote(line=line + tree.line - 1, text=note))
        return as_yaml(value).removeprefix("---\n").replace("\n", newline_of(text))
    for loss in edited.lost_comments:
        comments = f"{loss.count} comment{'s' if loss.count > 1 else ''}"
        text_of_loss = f"{comments} lost with {loss.path or 'the whole document'}"
        file.notes.append(LineNote(line=line + loss.lines_above, text=text_of_loss))
    return edited.text


def _splice(text: str, old: JsonValue, new: JsonValue) -> Spliced | None:
    try:
        edited = splice(text, old, new)
    except UnspliceableError:
        return None
    again = list(read_documents(edited.text.encode()))
    is_right = len(again) == 1 and isinstance(again[0], Tree) and same(again[0].value, new)
    return edited if is_right else None
