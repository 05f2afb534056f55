"""Checking of all objects of a file: documents one by one, lists item by item, the rest with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from apiserver.schema.json import JsonValue
from controller.commands.check.documents import read_documents
from controller.commands.check.judge import judge_object
from controller.commands.check.result import CheckResult, Finding, Verdict
from controller.commands.check.sources import Source
from controller.commands.check.tree import Tree, UnreadableError

_LIST: Final = "List"


def check_source(source: Source, namespace: str = "") -> Iterator[CheckResult]:
    """Yield the result of every object of a file; an unreadable or unchecked file is a result, too.

    Objects without a namespace are in the given one; without that, their namespace is unknown.
    """
    if source.problem:
        yield _unreadable(source, source.problem, 0)
        return
    is_checked = False
    lines: dict[tuple[str, ...], int] = {}
    for result in _results(source, namespace):
        is_checked = is_checked or result.verdict is not Verdict.SKIPPED or bool(result.unchecked)
        first = lines.setdefault(result.identity, result.line) if result.name else result.line
        yield result if first == result.line else _repeated(result, first)
    if source.is_named and not is_checked:
        why = "nothing in this file was checked: no object is of a supported kind"
        yield CheckResult(file=source.name, line=0, verdict=Verdict.SKIPPED, unchecked=why)


def _repeated(result: CheckResult, first: int) -> CheckResult:
    """Return the result for an object that a file contains a second time."""
    if result.verdict is not Verdict.VALID:
        return result
    why = f"{result.kind}/{result.name} is also on line {first}: kubectl applies both, and this one remains"
    return replace(result, warnings=(*result.warnings, why))


def _results(source: Source, namespace: str) -> Iterator[CheckResult]:
    for document in read_documents(source.data):
        if isinstance(document, UnreadableError):
            yield _unreadable(source, document.message, document.line)
        else:
            yield from _objects(source, document, namespace)


def _objects(source: Source, tree: Tree, namespace: str) -> Iterator[CheckResult]:
    if not source.is_named and not _claims_to_be_a_manifest(tree.value):
        # Directories contain other files as well, such as chart values or tool settings.
        yield CheckResult(file=source.name, line=tree.line, verdict=Verdict.SKIPPED)
    elif problem := _problem(tree.value):
        yield _unreadable(source, problem, tree.line)
    elif tree.value["kind"].endswith(_LIST) and isinstance(tree.value.get("items"), list):
        yield from _items(source, tree, namespace)
    else:
        yield judge_object(tree, source.name, namespace=namespace)


def _items(source: Source, tree: Tree, namespace: str) -> Iterator[CheckResult]:
    kind: str = tree.value["kind"].removesuffix(_LIST)
    lines = tree.marks_of(tree.value["items"]).lines
    for position, item in enumerate(tree.value["items"]):
        if kind and isinstance(item, dict):
            item.setdefault("apiVersion", tree.value["apiVersion"])
            item.setdefault("kind", kind)
        part = tree.part(item, lines[position])
        if problem := _problem(item):
            yield _unreadable(source, problem, part.line)
        else:
            yield from _objects(source, part, namespace)


def _claims_to_be_a_manifest(value: JsonValue) -> bool:
    return isinstance(value, dict) and ("apiVersion" in value or "kind" in value)


def _problem(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return "not an object: a manifest is a mapping with apiVersion and kind"
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            return f"Object '{name}' is missing: a manifest names its kind and the version of it"
    return ""


def _unreadable(source: Source, message: str, line: int) -> CheckResult:
    finding = Finding(field="", reason="Unreadable", message=message, line=line)
    return CheckResult(file=source.name, line=line, verdict=Verdict.UNREADABLE, errors=(finding,))
