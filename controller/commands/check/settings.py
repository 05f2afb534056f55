"""Checking of the ConfigMaps of service classes and prices, by the schema that the controller uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from apiserver.kinds.settings import settings_errors
from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.paths import FieldPath
from controller.commands.check.documents import read_documents
from controller.commands.check.result import CheckResult, Finding, Verdict
from controller.commands.check.tree import Tree, UnreadableError


def judged_settings(result: CheckResult, tree: Tree) -> CheckResult:
    """Return the result for a ConfigMap of settings: all errors, with their lines within its texts."""
    found = tuple(_findings(result.name, tree))
    if found:
        return replace(result, verdict=Verdict.REFUSED, errors=found)
    return replace(result, verdict=Verdict.VALID, value=tree.value)


def _findings(name: str, tree: Tree) -> Iterator[Finding]:
    for wrong in metadata_errors(tree.value.get("metadata")):
        yield _finding(wrong.error, tree.line_of(wrong.culprit))
    data = tree.value.get("data")
    for key, line in tree.marks_of(data).repeated:
        yield _finding(errors.duplicate(FieldPath().child("data").key(key), key), line)
    for error in settings_errors(name, data, NamesConfig()):
        yield _finding(error, _line(tree, error.path))


def _finding(error: FieldError, line: int) -> Finding:
    return Finding(field=str(error.path), reason=error.reason, message=error.body, line=line)


def _line(tree: Tree, path: FieldPath) -> int:
    """Return the line of a field within the text of its key, or that of the key if it is on one line."""
    of_key = FieldPath(path.parts[:2])
    data = tree.value.get("data")
    key = FieldPath.member(str(path.parts[1])) if len(path.parts) > 1 else ""
    first = tree.marks_of(data).texts.get(key)
    if first is None:
        return tree.line_of(of_key)
    document = next(iter(read_documents(data[key].encode())), None)
    if isinstance(document, Tree):
        return first + document.line_of(FieldPath(path.parts[2:])) - 1
    return first + document.line - 1 if isinstance(document, UnreadableError) else first
