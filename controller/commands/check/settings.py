"""Checking of the ConfigMaps of service classes and prices, by the schema that the controller uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from apiserver.kinds.settings import settings_errors
from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from controller.commands.check.documents import read_documents
from controller.commands.check.result import CheckResult, Finding, Verdict
from controller.commands.check.strictness import undecodable
from controller.commands.check.tree import Tree, UnreadableError

_USUAL_NAMESPACE: Final = "stowplan-system"
"""The namespace of the shipped manifests."""


@declaration()
class _ConfigMap:
    """The fields of a ConfigMap."""

    data: Maybe[dict[str, str]] = UNSET
    """Texts by key."""

    binary_data: Maybe[dict[str, str]] = UNSET
    """Other content by key."""

    immutable: bool = False
    """Whether the content can never change."""


def judge_settings(result: CheckResult, tree: Tree, namespace: str) -> CheckResult:
    """Return the result for a ConfigMap of settings: all errors, with their lines within its texts.

    Its namespace is `namespace` if it has none itself; if that is empty too, it is unknown.
    """
    unfit, errors = tuple(undecodable(tree, node_of(_ConfigMap))), tuple(_findings(result.name, tree))
    if unfit or errors:
        return replace(result, verdict=Verdict.REFUSED, undecodable=unfit, errors=errors)
    where = result.namespace or namespace
    warnings = (f"is read only if Stowplan is installed in namespace {where}",)
    is_elsewhere = where not in {"", _USUAL_NAMESPACE}
    return replace(result, verdict=Verdict.VALID, value=tree.value, warnings=warnings if is_elsewhere else ())


def _findings(name: str, tree: Tree) -> Iterator[Finding]:
    for wrong in metadata_errors(tree.value.get("metadata")):
        yield _finding(wrong.error, tree.line_of(wrong.culprit))
    for error in settings_errors(name, tree.value.get("data"), NamesConfig()):
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
