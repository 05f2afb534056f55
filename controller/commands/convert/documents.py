"""Conversion of the text of a file: changed documents are edited, all others are preserved byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from apiserver.schema.json import Json, JsonValue, same
from controller.commands.check.documents import FilePart, Source, encoding_of, read_documents, read_parts
from controller.commands.check.matching import duplicates
from controller.commands.check.tree import MOST_LEVELS, Tree, UnreadableDocumentError
from controller.commands.check.yaml_values import as_yaml
from controller.commands.convert.objects import Conversion, ObjectNote, UnknownVersionError
from controller.commands.convert.splice import (
    SpliceResult,
    UnspliceableError,
    comment_places,
    newline_of,
    splice,
)

Convert: TypeAlias = Callable[[JsonValue], Conversion]
"""A function from a value to its conversion."""

_FIRST_INDENT: Final = re.compile(r"[\[{]\r?\n([ \t]*)")
_INDENT: Final = re.compile(r"^ +", re.MULTILINE)
_COMPACT: Final = -1
_ONE_LINE: Final = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LineNote:
    """A note on a line of the file."""

    line: int
    text: str


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


def convert_file(source: Source, convert: Convert) -> ConvertedFile:
    """Return a file with each of its documents converted; never raises, whatever its content."""
    file = read_file(source)
    edit_file(file, convert)
    return file


def read_file(source: Source) -> ConvertedFile:
    """Return a file with its documents, before conversion; `problems` says what cannot be read."""
    if source.problem:
        return ConvertedFile(problems=[LineNote(line=0, text=source.problem)])
    parts = tuple(read_parts(source.data))
    file = ConvertedFile(parts=parts, encoding=encoding_of(source.data))
    for document in (document for part in parts for document in part.documents):
        if isinstance(document, UnreadableDocumentError):
            file.problems.append(LineNote(line=document.line, text=document.message))
        elif _is_too_deep(document.value):
            text = f"nested deeper than {MOST_LEVELS} levels by its aliases"
            file.problems.append(LineNote(line=document.line, text=text))
    if not file.problems:
        file.before = file.after = source.data.decode(file.encoding)
    return file


def trees_of(part: FilePart) -> list[Tree]:
    """Return the documents of a part that was read without problems."""
    return [document for document in part.documents if isinstance(document, Tree)]


def edit_file(file: ConvertedFile, convert: Convert) -> None:
    """Convert the documents of a file that was read without problems: its text, values and notes."""
    if not file.problems:
        file.after = "".join(_convert_part(part, convert, file) for part in file.parts)


def _convert_part(part: FilePart, convert: Convert, file: ConvertedFile) -> str:
    """Return the text of a part after conversion, with its separator unless nothing is left of it."""
    pairs = [(tree, _convert_tree(tree, convert, file)) for tree in trees_of(part)]
    file.values += [value for _, conversion in pairs for value in conversion.values]
    added = [value for _, conversion in pairs for value in conversion.added]
    text = _edit_part(part, [(tree, conversion.value) for tree, conversion in pairs], file)
    if not text.strip() and part.text.strip() and not added:
        return ""
    return f"{part.separator}{text}{_added_text(text, part, added)}"


def _added_text(text: str, part: FilePart, added: Sequence[Json]) -> str:
    """Return the text of new documents after a part, in the format of the part."""
    if not added:
        return ""
    render = _indented_json if trees_of(part)[0].span else as_yaml
    begin = "" if text.endswith("\n") or not text else "\n"
    return f"{begin}{''.join(map(render, added))}".replace("\n", newline_of(part.text))


def _indented_json(value: Json) -> str:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"


def _edit_part(part: FilePart, pairs: Sequence[tuple[Tree, JsonValue]], file: ConvertedFile) -> str:
    """Return the text of a part with each of its documents edited, or removed."""
    if file.problems or all(same(tree.value, value) for tree, value in pairs):
        return part.text
    pieces, place = [], 0
    for tree, value in pairs:
        if tree.span is None:
            return _edit_yaml(part, tree, value, file)
        if same(tree.value, value):
            continue
        start, end = tree.span
        after, note = ("", "") if value is None else _edit_json(part.text[start:end], tree.value, value)
        if note:
            file.notes.append(LineNote(line=tree.line, text=note))
        pieces += [part.text[place:start], after]
        place = end
    return "".join([*pieces, part.text[place:]])


def _convert_tree(tree: Tree, convert: Convert, file: ConvertedFile) -> Conversion:
    try:
        conversion = convert(tree.value)
    except UnknownVersionError as error:
        file.problems.append(LineNote(line=tree.line, text=str(error)))
        return Conversion(value=tree.value, count=0)
    if conversion.count:
        file.problems += [
            LineNote(line=error.line, text=f"{error.message}: keep one of them") for error in duplicates(tree)
        ]
    file.count += conversion.count
    file.notes += [LineNote(line=_line_of(tree, note), text=note.text) for note in conversion.notes]
    return conversion


def _line_of(tree: Tree, note: ObjectNote) -> int:
    return tree.line if note.item is None else tree.marks_of(tree.value["items"]).lines[note.item]


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


def _edit_yaml(part: FilePart, tree: Tree, value: JsonValue, file: ConvertedFile) -> str:
    if value is None:
        if count := len(list(comment_places(part.text))):
            text = f"{_comments(count)} lost with the document"
            file.notes.append(LineNote(line=tree.line, text=text))
        return ""
    edited = _splice(part.text, tree.value, value)
    if edited is None:
        text = "rewritten without its comments: it has anchors, or a form that cannot be edited in place"
        file.notes.append(LineNote(line=tree.line, text=text))
        return as_yaml(value).removeprefix("---\n").replace("\n", newline_of(part.text))
    for loss in edited.lost_comments:
        text = f"{_comments(loss.count)} lost with {loss.path or 'the whole document'}"
        file.notes.append(LineNote(line=part.line + loss.lines_above, text=text))
    return edited.text


def _comments(count: int) -> str:
    return f"{count} comment{'s' if count > 1 else ''}"


def _splice(text: str, old: JsonValue, new: JsonValue) -> SpliceResult | None:
    try:
        edited = splice(text, old, new)
    except UnspliceableError:
        return None
    again = list(read_documents(edited.text.encode()))
    is_right = len(again) == 1 and isinstance(again[0], Tree) and same(again[0].value, new)
    return edited if is_right else None
