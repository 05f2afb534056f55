"""Parsing of JSON text into trees: the standard library parses it, and its tokens provide line numbers."""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from apiserver.schema.json import JsonValue
from controller.commands.check.scalars import as_json_number
from controller.commands.check.tree import MOST_LEVELS, Tree, TreeBuilder, UnreadableError

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s,:\[\]{}"]+')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LITERALS: Final = {"true": True, "false": False, "null": None}


class JsonSyntaxError(UnreadableError):
    """The text is not JSON; it may still be YAML in flow style."""


def json_trees(text: str, first_line: int) -> list[Tree]:
    """Return the values of a text of consecutive JSON values, as kubectl reads them.

    Raises JsonSyntaxError, and UnreadableError for JSON beyond the limits of a manifest.
    """
    ends = _ends(text, first_line)
    trees, begin, line = [], 0, first_line
    for end in ends:
        trees.append(_tree(text[begin:end], line))
        line += text.count("\n", begin, end)
        begin = end
    return [tree for tree in trees if tree.value is not None]


def _ends(text: str, first_line: int) -> list[int]:
    ends: list[int] = []
    begin = after_space(text, 0)
    try:
        while begin < len(text):
            ends.append(end_of_value(text, begin))
            begin = after_space(text, ends[-1])
    except json.JSONDecodeError as error:
        raise JsonSyntaxError(f"json: {error.msg}", first_line + error.lineno - 1) from error
    except ValueError as error:
        raise JsonSyntaxError(f"json: {error}", first_line + text.count("\n", 0, begin)) from error
    except RecursionError as error:
        raise UnreadableError(f"nested deeper than {MOST_LEVELS} levels", first_line) from error
    return ends


def _tree(text: str, first_line: int) -> Tree:
    builder = TreeBuilder()
    line, seen = first_line, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", seen, token.start())
        seen = token.start()
        match token.group():
            case "{":
                builder.begin({}, line)
            case "[":
                builder.begin([], line)
            case "}" | "]":
                builder.end()
            case word:
                builder.scalar(_scalar(word, line), line)
    assert builder.tree is not None, "the text is JSON"
    return builder.tree


def _scalar(word: str, line: int) -> JsonValue:
    if word.startswith('"'):
        return _text(word)
    if word in _LITERALS:
        return _LITERALS[word]
    try:
        return as_json_number(json.loads(word))
    except (ValueError, OverflowError) as error:
        raise UnreadableError(f"json: the number {word[:32]} is too large", line) from error


def _text(word: str) -> str:
    if "\\" not in word:
        return word[1:-1]
    text: str = json.loads(word)
    # An unpaired surrogate is not a character; Go replaces it by this one.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def end_of_value(text: str, begin: int) -> int:
    """Return the end of the JSON value that begins at a position. Raises ValueError."""
    return _DECODER.raw_decode(text, begin)[1]


def after_space(text: str, begin: int) -> int:
    """Return the position of the first character at or after `begin` that is no space."""
    found = _SPACE.match(text, begin)
    assert found is not None, "the pattern matches nothing as well"
    return found.end()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no number {name}")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_int=float)
