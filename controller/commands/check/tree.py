"""Parsed documents: JSON values with the line number of each member.

They are built from events without recursion, so that no nesting exhausts the stack. Aliases share their
value, and their total expanded size is limited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from controller.commands.check.yaml_values import key_text

MOST_LEVELS: Final = 200
MOST_ALIASED_VALUES: Final = 400_000
"""The limit of go-yaml (`decode.go`, `alias_ratio_range_low`), beyond which a document counts as
malicious."""


class UnreadableDocumentError(Exception):
    """A document cannot be read; `line` is the line of the error."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


class _Merge:
    """The merge key `<<`: the members of its value become members of the mapping that contains it."""


MERGE: Final = _Merge()
_Key: TypeAlias = str | _Merge | None


@dataclass(slots=True)
class Marks:
    """The lines of the members or items of one container, and the names that occur more than once."""

    lines: dict[str | int, int] = field(default_factory=dict)
    repeated: list[tuple[str, int]] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    """The first line of each text that is written as a literal block, by member."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A value, its first line, and the marks of each of its containers, by identity."""

    value: JsonValue
    line: int
    marks: dict[int, Marks]
    span: tuple[int, int] | None = None
    """The begin and end of its text in the part of the file, if it is JSON."""

    def part(self, value: JsonValue, line: int) -> Tree:
        """Return the tree of a value within this one."""
        return Tree(value=value, line=line, marks=self.marks)

    def marks_of(self, container: JsonValue) -> Marks:
        """Return the marks of a list or object in this tree; empty for any other value."""
        return self.marks.get(id(container), Marks())

    def line_of(self, path: FieldPath) -> int:
        """Return the line of a field, or of its nearest existing parent."""
        line, value = self.line, self.value
        for part in path.parts:
            key = part
            if isinstance(part, str) and isinstance(value, dict) and part not in value:
                key = part.removeprefix("[").removesuffix("]")
            lines = self.marks_of(value).lines
            if key not in lines:
                return line
            line, value = lines[key], value[key]
        return line


@dataclass(slots=True)
class _OpenNode:
    value: JsonValue
    line: int
    anchor: str | None
    size: int = 1
    key: _Key = None
    key_line: int = 0
    written: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _AnchorTarget:
    value: JsonValue
    size: int
    is_complete: bool


class TreeBuilder:
    """Builds a tree from the events of one document; `tree` is set after the last one.

    Every method raises UnreadableError for what JSON or a manifest does not allow.
    """

    def __init__(self) -> None:
        self.tree: Tree | None = None
        self._marks: dict[int, Marks] = {}
        self._open: list[_OpenNode] = []
        self._anchored: dict[str, _AnchorTarget] = {}
        self._aliased_values = 0

    @property
    def expects_key(self) -> bool:
        """Tell whether the next scalar is the name of a member."""
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def begin(self, container: JsonValue, line: int, anchor: str | None = None) -> None:
        """Begin an empty list or object."""
        if self.expects_key:
            raise UnreadableDocumentError("invalid map key: a key must be text, a number or a boolean", line)
        if len(self._open) >= MOST_LEVELS:
            raise UnreadableDocumentError(f"nested deeper than {MOST_LEVELS} levels", line)
        self._marks[id(container)] = Marks()
        if anchor is not None:
            self._anchored[anchor] = _AnchorTarget(container, 1, is_complete=False)
        self._open.append(_OpenNode(container, line, anchor))

    def end(self) -> None:
        """End the innermost container."""
        closed = self._open.pop()
        if closed.anchor is not None and self._anchored[closed.anchor].value is closed.value:
            self._anchored[closed.anchor] = _AnchorTarget(closed.value, closed.size, is_complete=True)
        self._place(closed.value, closed.line, closed.size)

    def scalar(
        self, value: JsonValue, line: int, anchor: str | None = None, *, is_literal: bool = False
    ) -> None:
        """Add a key or a scalar value; a literal block begins below its line."""
        if is_literal and self._open and isinstance(key := self._open[-1].key, str):
            self._marks[id(self._open[-1].value)].texts[key] = line + 1
        if anchor is not None:
            self._anchored[anchor] = _AnchorTarget(value, 1, is_complete=True)
        self._place(value, line, 1)

    def alias(self, name: str, line: int) -> None:
        """Add the value of an anchor."""
        anchored = self._anchored.get(name)
        if anchored is None:
            raise UnreadableDocumentError(f"unknown anchor '{name}' referenced", line)
        if not anchored.is_complete:
            raise UnreadableDocumentError(f"anchor '{name}' value contains itself", line)
        self._aliased_values += anchored.size
        if self._aliased_values > MOST_ALIASED_VALUES:
            raise UnreadableDocumentError("document contains excessive aliasing", line)
        self._place(anchored.value, line, anchored.size)

    def _place(self, value: JsonValue, line: int, size: int) -> None:
        if not self._open:
            self.tree = Tree(value=value, line=line, marks=self._marks)
            return
        within = self._open[-1]
        within.size += size
        if isinstance(within.value, list):
            self._marks[id(within.value)].lines[len(within.value)] = line
            within.value.append(value)
        elif within.key is None:
            within.key, within.key_line = _key(value, line), line
        else:
            self._place_member(within, value, line)
            within.key = None

    def _place_member(self, within: _OpenNode, value: JsonValue, line: int) -> None:
        marks = self._marks[id(within.value)]
        if isinstance(within.key, str):
            if within.key in within.written:
                marks.repeated.append((within.key, within.key_line))
            within.written.add(within.key)
            within.value[within.key] = value
            marks.lines[within.key] = within.key_line
            return
        # As in go-yaml: a merge overrides members above it, and in a list of merges the first one wins.
        for source in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(source, dict):
                raise UnreadableDocumentError("map merge requires map or sequence of maps as the value", line)
            within.value.update(source)
            marks.lines.update(self._marks[id(source)].lines)


def _key(value: JsonValue, line: int) -> str | _Merge:
    if isinstance(value, _Merge):
        return value
    try:
        return key_text(value)
    except ValueError as error:
        raise UnreadableDocumentError(f"invalid map key: {error}", line) from error
