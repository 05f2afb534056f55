"""Reading of files into documents as kubectl does it: split at `---`, each part JSON or else YAML.

Each part is parsed separately, so that a syntax error in one does not affect the others. Source:
`k8s.io/apimachinery/pkg/util/yaml/decoder.go`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, NoReturn

import yaml

from apiserver.schema.json import JsonValue
from controller.commands.check.tree import MERGE, MOST_LEVELS, Tree, TreeBuilder, UnreadableDocumentError
from controller.commands.check.yaml_values import as_json_number, resolve

STANDARD_INPUT: Final = "-"
EXTENSIONS: Final = frozenset({".yaml", ".yml", ".json"})
_LARGEST_FILE_BYTES: Final = 64 * 1024 * 1024

_SEPARATOR: Final = re.compile(r"^(---[^\n]*\n?)", re.MULTILINE)
_LOOKS_LIKE_JSON: Final = re.compile(r'\s*\{\s*["}]')
_TEMPLATE: Final = "{{"
_UNRENDERED: Final = "; if this is a template, render it first, for example with helm template"
_MARKS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))

_JSON_SPACE: Final = re.compile(r"[ \t\r\n]*")
_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s,:\[\]{}"]+')
_JSON_LITERALS: Final = {"true": True, "false": False, "null": None}


class _JsonSyntaxError(UnreadableDocumentError):
    """The text is not JSON; it may still be YAML in flow style."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file: its bytes, or why it cannot be read. `is_named` is False for one found in a directory."""

    name: str
    data: bytes = b""
    problem: str = ""
    is_named: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePart:
    """The text after one separator, the line where it begins in the file, and its documents.

    A document that cannot be read is an error; lines count from 1.
    """

    separator: str = ""
    text: str = ""
    line: int = 1
    documents: tuple[Tree | UnreadableDocumentError, ...] = ()


def read_sources(names: Sequence[str]) -> Iterator[Source]:
    """Yield the files for some names, one at a time; an unreadable one has a `problem`."""
    for name in names:
        if name == STANDARD_INPUT:
            yield _read_source(sys.stdin.buffer, "<stdin>")
        elif (path := Path(name)).is_dir():
            yield from _read_directory(path)
        else:
            yield _read_file(path)


def _read_directory(directory: Path) -> Iterator[Source]:
    paths = [path for path in sorted(directory.rglob("*")) if path.suffix in EXTENSIONS]
    files = [path for path in paths if path.is_file() and not _is_hidden(path.relative_to(directory))]
    if not files:
        yield Source(name=str(directory), problem="no *.yaml, *.yml or *.json in this directory")
    for path in files:
        yield _read_file(path, is_named=False)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _read_file(path: Path, *, is_named: bool = True) -> Source:
    try:
        with path.open("rb") as file:
            return _read_source(file, str(path), is_named=is_named)
    except OSError as error:
        return Source(name=str(path), problem=f"cannot be read: {error.strerror or error}", is_named=is_named)


def _read_source(file: IO[bytes], name: str, *, is_named: bool = True) -> Source:
    data = file.read(_LARGEST_FILE_BYTES + 1)
    if len(data) > _LARGEST_FILE_BYTES:
        problem = f"larger than {_LARGEST_FILE_BYTES // 1024**2} MiB"
        return Source(name=name, problem=problem, is_named=is_named)
    return Source(name=name, data=data, is_named=is_named)


def encoding_of(data: bytes) -> str:
    """Return the encoding of a file, by the mark at its begin."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def read_documents(data: bytes) -> Iterator[Tree | UnreadableDocumentError]:
    """Yield every non-empty document of a file, or why it cannot be read."""
    for part in read_parts(data):
        yield from part.documents


def read_parts(data: bytes) -> Iterator[FilePart]:
    """Yield the parts of a file with their documents. Together they have its whole text, if that is text."""
    try:
        text = data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield FilePart(
            documents=(UnreadableDocumentError(f"not UTF-8: byte {data[error.start]:#04x}", line),)
        )
        return
    pieces, line = _SEPARATOR.split(text), 1
    for separator, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        errors = []
        rest = separator.removeprefix("---").strip()
        if rest and not rest.startswith("#"):
            errors.append(UnreadableDocumentError(f"invalid Yaml document separator: {rest}", line))
        line += separator.count("\n")
        yield FilePart(
            separator=separator, text=piece, line=line, documents=(*errors, *_read_part(piece, line))
        )
        line += piece.count("\n")


def _read_part(text: str, first_line: int) -> Iterator[Tree | UnreadableDocumentError]:
    try:
        yield from (tree for tree in _trees(text, first_line) if tree.value is not None)
    except UnreadableDocumentError as error:
        yield UnreadableDocumentError(error.message + _UNRENDERED, error.line) if _TEMPLATE in text else error


def _trees(text: str, first_line: int) -> list[Tree]:
    if not text.lstrip().startswith("{"):
        return _yaml_trees(text, first_line)
    try:
        return _json_trees(text, first_line)
    except _JsonSyntaxError as error:
        try:
            return _yaml_trees(text, first_line)
        except UnreadableDocumentError:
            if _LOOKS_LIKE_JSON.match(text):
                raise error from None
            raise


def _yaml_trees(text: str, first_line: int) -> list[Tree]:
    builder = TreeBuilder()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            _build(builder, event, first_line + (event.start_mark.line if event.start_mark else 0))
    except yaml.YAMLError as error:
        raise _yaml_error(error, text, first_line) from error
    return [builder.tree] if builder.tree is not None else []


def _build(builder: TreeBuilder, event: yaml.Event, line: int) -> None:
    match event:
        case yaml.ScalarEvent():
            value = _yaml_scalar(event, line, is_key=builder.expects_key)
            builder.scalar(value, line, event.anchor, is_literal=event.style == "|")
        case yaml.MappingStartEvent():
            builder.begin({}, line, event.anchor)
        case yaml.SequenceStartEvent():
            builder.begin([], line, event.anchor)
        case yaml.CollectionEndEvent():
            builder.end()
        case yaml.AliasEvent(anchor=str(name)):
            builder.alias(name, line)
        case yaml.DocumentStartEvent() if builder.tree is not None:
            # After a line break that only YAML recognizes as one. kubectl would ignore this document.
            raise UnreadableDocumentError("a second document: insert a line with --- before it", line)
        case _:
            pass  # the start and end of stream and document


def _yaml_scalar(event: yaml.ScalarEvent, line: int, *, is_key: bool) -> JsonValue:
    plain = event.implicit[0]
    if is_key and event.value == "<<" and plain:
        return MERGE
    try:
        return resolve(event.value, event.tag, plain=plain)
    except ValueError as error:
        raise UnreadableDocumentError(str(error), line) from error


def _yaml_error(error: yaml.YAMLError, text: str, first_line: int) -> UnreadableDocumentError:
    if isinstance(error, yaml.reader.ReaderError):
        before = text.encode()[: error.position].count(b"\n")
        return UnreadableDocumentError(f"yaml: {error.reason}", first_line + before)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    # Something missing at the end is reported after the last line.
    line = min(mark.line, text.rstrip().count("\n")) if mark is not None else 0
    problem = str(getattr(error, "problem", error))
    if "\\t" in problem or text.split("\n")[line].lstrip(" ").startswith("\t"):
        problem = "a line begins with a tab: indent with spaces"
    return UnreadableDocumentError(f"yaml: {problem}", first_line + line)


def _json_spans(text: str, first_line: int) -> list[tuple[int, int]]:
    """Return the begin and end of each value in a text of consecutive JSON values.

    Raises _JsonSyntaxError, and UnreadableError for values nested too deeply.
    """
    spans: list[tuple[int, int]] = []
    begin = _after_space(text, 0)
    try:
        while begin < len(text):
            spans.append((begin, _JSON_DECODER.raw_decode(text, begin)[1]))
            begin = _after_space(text, spans[-1][1])
    except json.JSONDecodeError as error:
        raise _JsonSyntaxError(f"json: {error.msg}", first_line + error.lineno - 1) from error
    except ValueError as error:
        raise _JsonSyntaxError(f"json: {error}", first_line + text.count("\n", 0, begin)) from error
    except RecursionError as error:
        raise UnreadableDocumentError(f"nested deeper than {MOST_LEVELS} levels", first_line) from error
    return spans


def _after_space(text: str, begin: int) -> int:
    space = _JSON_SPACE.match(text, begin)
    assert space is not None, "the pattern matches nothing as well"
    return space.end()


def _json_trees(text: str, first_line: int) -> list[Tree]:
    """Return consecutive JSON values: the standard library validates them, and tokens have the lines."""
    trees, place, line = [], 0, first_line
    for begin, end in _json_spans(text, first_line):
        line += text.count("\n", place, begin)
        place = begin
        trees.append(replace(_json_tree(text[begin:end], line), span=(begin, end)))
    return trees


def _json_tree(text: str, line: int) -> Tree:
    builder = TreeBuilder()
    place = 0
    for token in _JSON_TOKEN.finditer(text):
        line += text.count("\n", place, token.start())
        place = token.start()
        match token.group():
            case "{":
                builder.begin({}, line)
            case "[":
                builder.begin([], line)
            case "}" | "]":
                builder.end()
            case word:
                builder.scalar(_json_scalar(word, line), line)
    assert builder.tree is not None, "the text is JSON"
    return builder.tree


def _json_scalar(word: str, line: int) -> JsonValue:
    if word.startswith('"'):
        return _json_text(word)
    if word in _JSON_LITERALS:
        return _JSON_LITERALS[word]
    try:
        return as_json_number(json.loads(word))
    except (ValueError, OverflowError) as error:
        raise UnreadableDocumentError(f"json: the number {word[:32]} is too large", line) from error


def _json_text(word: str) -> str:
    if "\\" not in word:
        return word[1:-1]
    text: str = json.loads(word)
    # An unpaired surrogate is not a character; Go replaces it by this one.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no number {name}")


_JSON_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=float)
