"""Edits to the text of a YAML document that preserve the bytes, and so the comments, of unchanged parts.

Only differing parts are rewritten. Positions come from PyYAML's nodes. The caller parses the result again and
compares it, so that an unsupported form may cost comments but never changes the meaning.

A library that round-trips comments is no substitute. ruamel.yaml 0.19 attaches a comment to the value above
it: when a field is removed, its comment stays above the next field, and the next field's own comment goes. It
also reformats lines that were not edited (text that `kubectl get -o yaml` has folded, aligned values, flow
style, `~`, CRLF), which would show in `--diff` and in a user's history.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from apiserver.schema.json import Json, JsonValue, same
from controller.commands.check.yaml_values import as_flow_yaml, as_yaml

_COMMENT: Final = re.compile(r"#[^\r\n]*")


class UnspliceableError(Exception):
    """The text has a form in which a change cannot be located."""


@dataclass(frozen=True, order=True, slots=True)
class Edit:
    """A replacement of the characters from `start` to `end` by `text`, because of the field at `path`."""

    start: int
    end: int
    text: str
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LostComments:
    """Comments that were removed with a field: their number, and the number of lines above them."""

    path: str
    count: int
    lines_above: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SpliceResult:
    """A text after its edits, and the comments that were removed."""

    text: str
    lost_comments: tuple[LostComments, ...]


def splice(text: str, old: JsonValue, new: JsonValue) -> SpliceResult:
    """Return the text of one document with value `old`, edited to have value `new`.

    Raises UnspliceableError.
    """
    splicer, root = _Splicer(text, newline_of(text)), _compose(text)
    edits = sorted(splicer.edits(root, old, new, ""))
    for one, other in itertools.pairwise(edits):
        if other.start < one.end:
            raise UnspliceableError("two changes fall on the same text")
    pieces, place = [], 0
    for edit in edits:
        pieces += [text[place : edit.start], edit.text]
        place = edit.end
    edited = "".join([*pieces, text[place:]])
    return SpliceResult(text=edited, lost_comments=tuple(_lost_comments(text, edits)))


def _lost_comments(text: str, edits: list[Edit]) -> Iterator[LostComments]:
    places = list(comment_places(text))
    for edit in edits:
        within = [place for place in places if edit.start <= place < edit.end]
        if within:
            above = text.count("\n", 0, within[0])
            yield LostComments(path=edit.path, count=len(within), lines_above=above)


def comment_places(text: str) -> Iterator[int]:
    """Yield the positions of the comments of a YAML document; `#` begins one only between tokens."""
    place = 0
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        start = token.start_mark.index
        if isinstance(token, yaml.ScalarToken) and token.style in {"|", ">"}:
            # The token of a block scalar includes the comment on its first line.
            start = text.find("\n", start)
        yield from (comment.start() for comment in _COMMENT.finditer(text, place, max(place, start)))
        place = max(place, token.end_mark.index)
    yield from (comment.start() for comment in _COMMENT.finditer(text, place))


def newline_of(text: str) -> str:
    """Return the line ending of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _compose(text: str) -> yaml.Node:
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise UnspliceableError("it has events, and yet no nodes") from error
    if root is None:
        raise UnspliceableError("nothing is there")
    return root


@dataclass(frozen=True, slots=True)
class _Splicer:
    text: str
    newline: str

    def edits(self, node: yaml.Node, old: JsonValue, new: JsonValue, path: str) -> Iterator[Edit]:
        if same(old, new):
            return
        if isinstance(node, yaml.CollectionNode) and node.flow_style:
            yield Edit(node.start_mark.index, node.end_mark.index, self._flow(node, new), path)
        elif isinstance(node, yaml.MappingNode) and isinstance(old, dict) and isinstance(new, dict) and new:
            yield from self._mapping(node, old, new, path)
        elif isinstance(node, yaml.SequenceNode) and isinstance(new, list) and len(node.value) == len(new):
            for position, (item, was, now) in enumerate(zip(node.value, old, new, strict=True)):
                yield from self.edits(item, was, now, f"{path}[{position}]")
        else:
            raise UnspliceableError("a value is of another type now")

    def _flow(self, node: yaml.CollectionNode, new: JsonValue) -> str:
        """Return a value in flow style on one line: as JSON if that is how the old one begins."""
        text = self.text[node.start_mark.index : node.end_mark.index].lstrip("{[ \r\n")
        if isinstance(new, dict | list) and not text.startswith('"'):
            flow = as_flow_yaml(new)
            if "\n" not in flow:
                return flow
        return json.dumps(new, ensure_ascii=False)

    def _mapping(self, node: yaml.MappingNode, old: Json, new: Json, path: str) -> Iterator[Edit]:
        column = node.value[0][0].start_mark.column
        for key, value in node.value:
            name = key.value
            if key.tag.endswith(":merge"):
                continue
            within = f"{path}.{name}".removeprefix(".")
            if name not in new:
                yield self._deletion(key, value, within)
            elif name not in old:
                raise UnspliceableError("a key is no plain text")
            elif not same(old[name], new[name]):
                yield from self._member(key, value, old[name], new[name], within)
        added = {name: item for name, item in new.items() if name not in old}
        if added:
            yield self._insertion(node, column, added, path)

    def _member(
        self, key: yaml.Node, value: yaml.Node, old: JsonValue, new: JsonValue, path: str
    ) -> Iterator[Edit]:
        # The node of an alias is that of its anchor, which is above: an edit there would change other places.
        if value.start_mark.index < key.end_mark.index:
            raise UnspliceableError("an alias changes")
        try:
            edits = list(self.edits(value, old, new, path))
        except UnspliceableError:
            edits = [self._replacement(key, value, new, path)]
        yield from edits

    def _replacement(self, key: yaml.Node, value: yaml.Node, new: JsonValue, path: str) -> Edit:
        rendered = self._render({key.value: new}, key.start_mark.column).lstrip().rstrip("\r\n")
        return Edit(key.start_mark.index, self._end(key, value), rendered, path)

    def _deletion(self, key: yaml.Node, value: yaml.Node, path: str) -> Edit:
        start = self._line_start(key.start_mark.index)
        if self.text[start : key.start_mark.index].strip():
            raise UnspliceableError("what goes doesn't begin its line")
        # A comment directly above a field belongs to it.
        while start and self._is_comment(start, key.start_mark.column):
            start = self._line_start(start - 1)
        return Edit(start, self._line_end(self._end(key, value)), "", path)

    def _is_comment(self, line_start: int, column: int) -> bool:
        above = self.text[self._line_start(line_start - 1) : line_start]
        return above.lstrip(" ").startswith("#") and len(above) - len(above.lstrip(" ")) == column

    def _insertion(self, node: yaml.MappingNode, column: int, added: Json, path: str) -> Edit:
        place = self._line_end(self._end(*node.value[-1]))
        text = self._render(added, column)
        # A text without a line break at its end gets one before the new lines, and still has none at its end.
        if place and self.text[place - 1] != "\n":
            text = self.newline + text.rstrip("\r\n")
        return Edit(place, place, text, path)

    def _render(self, members: Json, column: int) -> str:
        lines = as_yaml(members).removeprefix("---\n").rstrip("\n").split("\n")
        return "".join(f"{' ' * column if line else ''}{line}{self.newline}" for line in lines)

    def _end(self, key: yaml.Node, value: yaml.Node) -> int:
        """Return the end of a member; marks of block collections end after the comments that follow."""
        if value.start_mark.index < key.end_mark.index:
            return self._line_end(key.end_mark.index, with_break=False)
        return max(self._end_of(value), key.end_mark.index + 1)

    def _end_of(self, node: yaml.Node) -> int:
        if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
            last = node.value[-1]
            if isinstance(last, tuple):
                return self._end(*last)
            if last.start_mark.index < node.start_mark.index:
                raise UnspliceableError("an alias stands last")
            return self._end_of(last)
        if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
            start = node.start_mark.index
            # The mark of a block scalar is after the empty lines that follow.
            return start + len(self.text[start : node.end_mark.index].rstrip())
        return int(node.end_mark.index)

    def _line_start(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int, *, with_break: bool = True) -> int:
        end = self.text.find("\n", index)
        if end < 0:
            return len(self.text)
        return end + 1 if with_break else end
