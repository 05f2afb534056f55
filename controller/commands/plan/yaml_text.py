"""YAML of settings and scenarios, parsed as the controller parses its own, and the lines of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import yaml

from apiserver.schema.document import duplicate_fields
from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from controller.commands.check.documents import read_documents
from controller.commands.check.tree import Tree, UnreadableError
from controller.commands.plan.reading import InputProblem

_PATH: Final = re.compile(r"[A-Za-z0-9_.\-/\[\]]+(?=: )")
_PART: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def documents_of(data: bytes) -> list[JsonValue]:
    """Return the documents of a file, without those that contain only comments.

    Raises UnreadableError, also for duplicate fields.
    """
    try:
        text = data.decode("utf-8-sig")
        documents = [item for item in yaml.safe_load_all(text) if item is not None]
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(f"not UTF-8: byte {data[error.start]:#04x}", line) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UnreadableError(f"not YAML: {error.problem}", mark.line + 1 if mark else 0) from error
    except RecursionError as error:
        raise UnreadableError("nested too deeply", 0) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableError(f"not YAML: {' '.join(str(error).split())}", 0) from error
    if repeated := duplicate_fields(text):
        more = [f"line {duplicate.line}: {duplicate}" for duplicate in repeated[1:]]
        raise UnreadableError("; ".join([str(repeated[0]), *more]), repeated[0].line)
    return documents


def with_lines(file: str, data: bytes, texts: Iterable[str]) -> tuple[InputProblem, ...]:
    """Return problems with the lines of the fields that they begin with, in the order of the lines."""
    problems = [InputProblem(file=file, line=_line_of(data, text), text=text) for text in texts]
    return tuple(sorted(problems, key=lambda problem: problem.line))


def _line_of(data: bytes, problem: str) -> int:
    """Return the line of the field with whose path a message begins, or of its nearest parent.

    Return 0 for a message without a path. `data` is readable, and contains one mapping.
    """
    match, tree = _PATH.match(problem), next(read_documents(data), None)
    if match is None or not isinstance(tree, Tree):
        return 0
    parts = (int(key) if key.isdigit() else key or name for key, name in _PART.findall(match[0]))
    return tree.line_of(FieldPath(tuple(parts)))
