"""Parsing of text into documents as kubectl does it: split at `---`, each part JSON or else YAML.

Each part is parsed separately, so that a syntax error in one does not affect the others. Source:
`k8s.io/apimachinery/pkg/util/yaml/decoder.go`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml

from apiserver.schema.json import JsonValue
from controller.commands.check.json_text import JsonSyntaxError, json_trees
from controller.commands.check.scalars import resolve
from controller.commands.check.tree import MERGE, Tree, TreeBuilder, UnreadableError

_SEPARATOR: Final = "---"
_LOOKS_LIKE_JSON: Final = re.compile(r'\s*\{\s*["}]')
_TEMPLATE: Final = "{{"
_UNRENDERED: Final = "; if this is a template, render it first, for example with helm template"
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def read_documents(data: bytes) -> Iterator[Tree | UnreadableError]:
    """Yield every non-empty document of a file, or why it cannot be read; lines count from 1."""
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield UnreadableError(f"not UTF-8: byte {data[error.start]:#04x}", line)
        return
    for part in _parts(text):
        if isinstance(part, UnreadableError):
            yield part
        else:
            yield from _read(*part)


def _parts(text: str) -> Iterator[tuple[str, int] | UnreadableError]:
    lines: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.startswith(_SEPARATOR):
            lines.append(line)
            continue
        yield "\n".join(lines), first
        rest = line.removeprefix(_SEPARATOR).strip()
        if rest and not rest.startswith("#"):
            yield UnreadableError(f"invalid Yaml document separator: {rest}", number)
        lines, first = [], number + 1
    yield "\n".join(lines), first


def _read(text: str, first_line: int) -> Iterator[Tree | UnreadableError]:
    try:
        yield from _trees(text, first_line)
    except UnreadableError as error:
        yield UnreadableError(error.message + _UNRENDERED, error.line) if _TEMPLATE in text else error


def _trees(text: str, first_line: int) -> list[Tree]:
    if not text.lstrip().startswith("{"):
        return _yaml_trees(text, first_line)
    try:
        return json_trees(text, first_line)
    except JsonSyntaxError as error:
        try:
            return _yaml_trees(text, first_line)
        except UnreadableError:
            if _LOOKS_LIKE_JSON.match(text):
                raise error from None
            raise


def _yaml_trees(text: str, first_line: int) -> list[Tree]:
    builder = TreeBuilder()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            _build(builder, event, first_line + (event.start_mark.line if event.start_mark else 0))
    except yaml.YAMLError as error:
        raise _unreadable(error, text, first_line) from error
    return [builder.tree] if builder.tree is not None and builder.tree.value is not None else []


def _build(builder: TreeBuilder, event: yaml.Event, line: int) -> None:
    match event:
        case yaml.ScalarEvent():
            value = _scalar(event, line, is_key=builder.expects_key)
            builder.scalar(value, line, event.anchor, is_literal=event.style == "|")
        case yaml.MappingStartEvent():
            builder.begin({}, line, event.anchor)
        case yaml.SequenceStartEvent():
            builder.begin([], line, event.anchor)
        case yaml.CollectionEndEvent():
            builder.end()
        case yaml.AliasEvent(anchor=str(name)):
            builder.alias(name, line)
        case _:
            pass  # the start and end of stream and document


def _scalar(event: yaml.ScalarEvent, line: int, *, is_key: bool) -> JsonValue:
    plain = event.implicit[0]
    if is_key and event.value == "<<" and plain:
        return MERGE
    try:
        return resolve(event.value, event.tag, plain=plain)
    except ValueError as error:
        raise UnreadableError(str(error), line) from error


def _unreadable(error: yaml.YAMLError, text: str, first_line: int) -> UnreadableError:
    if isinstance(error, yaml.reader.ReaderError):
        before = text.encode()[: error.position].count(b"\n")
        return UnreadableError(f"yaml: {error.reason}", first_line + before)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    # Something missing at the end is reported after the last line.
    line = min(mark.line, text.rstrip().count("\n")) if mark is not None else 0
    problem = str(getattr(error, "problem", error))
    if "\\t" in problem or text.split("\n")[line].lstrip(" ").startswith("\t"):
        problem = "a line begins with a tab: indent with spaces"
    return UnreadableError(f"yaml: {problem}", first_line + line)
