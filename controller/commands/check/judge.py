"""Checking of all objects of a file: how the API server and admission would respond to each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from apiserver.kinds.annotated import is_managed, term_problems
from apiserver.kinds.annotations import advice, annotation_advice
from apiserver.kinds.judgement import complete_and_judge, kept_errors
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import targets_of
from apiserver.kinds.registry import KINDS, find_version
from apiserver.kinds.scalable import SCALABLE, listing_error
from apiserver.kinds.settings import settings_errors
from apiserver.kinds.settings_names import INSTALLATION, NamesConfig, are_settings
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.document import nearest
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue, as_object
from apiserver.schema.kind import Kind, Version
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.shape import without_nulls
from apiserver.schema.validation import judge
from controller.commands.check.documents import Source, read_documents
from controller.commands.check.matching import (
    mismatch,
    misplacement,
    other_release,
    strict_errors,
    with_namespace,
)
from controller.commands.check.result import CheckResult, CheckVerdict, Defect
from controller.commands.check.tree import Tree, UnreadableDocumentError

_LIST: Final = "List"
_REQUEST_LIMIT_BYTES: Final = 3 * 1024 * 1024
"""The limit of `MaxRequestBodyBytes` in `k8s.io/apiserver/pkg/server/config.go`."""

_LIKENESS_OF_SETTINGS: Final = 0.9
"""The similarity from which the name of a ConfigMap is a typing error: service-class-config is one."""
_AUTOSCALERS: Final = frozenset({("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")})


@declaration()
class _ConfigMap:
    """The fields of a ConfigMap."""

    data: Maybe[dict[str, str]] = UNSET
    """Texts by key."""

    binary_data: Maybe[dict[str, str]] = UNSET
    """Other content by key."""

    immutable: bool = False
    """Whether the content can never change."""


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
        is_checked = is_checked or result.verdict is not CheckVerdict.SKIPPED or bool(result.unchecked)
        first = lines.setdefault(result.identity, result.line) if result.name else result.line
        yield result if first == result.line else _with_repetition(result, first)
    if source.is_named and not is_checked:
        why = "nothing in this file was checked: no object is of a supported kind"
        yield CheckResult(file=source.name, line=0, verdict=CheckVerdict.SKIPPED, unchecked=why)


def _with_repetition(result: CheckResult, first: int) -> CheckResult:
    """Return the result for an object that a file contains a second time."""
    if result.verdict is not CheckVerdict.VALID:
        return result
    why = f"{result.kind}/{result.name} is also on line {first}: kubectl applies both, and this one remains"
    return replace(result, warnings=(*result.warnings, why))


def _results(source: Source, namespace: str) -> Iterator[CheckResult]:
    for document in read_documents(source.data):
        if isinstance(document, UnreadableDocumentError):
            yield _unreadable(source, document.message, document.line)
        else:
            yield from _objects(source, document, namespace)


def _objects(source: Source, tree: Tree, namespace: str) -> Iterator[CheckResult]:
    if not source.is_named and not _claims_to_be_a_manifest(tree.value):
        # Directories contain other files as well, such as chart values or tool settings.
        yield CheckResult(file=source.name, line=tree.line, verdict=CheckVerdict.SKIPPED)
    elif problem := _problem(tree.value):
        yield _unreadable(source, problem, tree.line)
    elif tree.value["kind"].endswith(_LIST) and isinstance(tree.value.get("items"), list):
        yield from _items(source, tree, namespace)
    else:
        yield _judge_object(tree, source.name, namespace)


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
    defect = Defect(field="", reason="Unreadable", message=message, line=line)
    return CheckResult(file=source.name, line=line, verdict=CheckVerdict.UNREADABLE, errors=(defect,))


def _judge_object(tree: Tree, file: str, namespace: str) -> CheckResult:
    """Return the result of checking an object that has an `apiVersion` and `kind`."""
    metadata = as_object(tree.value.get("metadata"))
    result = CheckResult(
        file=file,
        line=tree.line,
        verdict=CheckVerdict.SKIPPED,
        api_version=tree.value["apiVersion"],
        kind=tree.value["kind"],
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
    )
    if (result.api_version, result.kind) == ("v1", "ConfigMap"):
        return _judge_config_map(result, tree, namespace)
    served = find_version(result.api_version, result.kind)
    if served is not None:
        return _judge_version(result, tree, *served, namespace=namespace)
    if (result.api_version.partition("/")[0], result.kind) in _AUTOSCALERS:
        return _judge_autoscaler(result, tree.value)
    error = mismatch(result.api_version, result.kind)
    if error is not None:
        return _refusal(result, [_defect(error, tree)])
    why = other_release(result.api_version, result.kind)
    return replace(result, unchecked=f"{result.kind}/{result.name} was not checked: {why}" if why else "")


def _judge_autoscaler(result: CheckResult, value: Json) -> CheckResult:
    """Return the result of an autoscaler. Only the annotations of an annotated one are checked."""
    if not is_managed(value) or any(metadata_errors(value["metadata"])):
        return result
    warnings = (*term_problems(value), *annotation_advice(value["kind"], value))
    return replace(result, verdict=CheckVerdict.VALID, warnings=warnings)


def _refusal(
    result: CheckResult, errors: Iterable[Defect], undecodable: Iterable[Defect] = ()
) -> CheckResult:
    return replace(
        result,
        verdict=CheckVerdict.REFUSED,
        undecodable=tuple(undecodable),
        errors=tuple(dict.fromkeys(errors)),  # the schema and the rules of metadata both check types
    )


def _defect(error: FieldError, tree: Tree, culprit: FieldPath | None = None) -> Defect:
    """Return an error with its line: that of its field, or of the field that causes it."""
    line = tree.line_of(error.path if culprit is None else culprit)
    return Defect(field=str(error.path), reason=error.reason, message=error.body, line=line)


def _metadata_defects(tree: Tree, value: Json) -> Iterator[Defect]:
    for wrong in metadata_errors(value.get("metadata")):
        yield _defect(wrong.error, tree, wrong.culprit)


def _judge_version(
    result: CheckResult, tree: Tree, kind: Kind, version: Version, *, namespace: str
) -> CheckResult:
    body = msgspec.json.encode({name: item for name, item in tree.value.items() if name != "status"})
    if len(body) > _REQUEST_LIMIT_BYTES:
        message = f"Request entity too large: limit is {_REQUEST_LIMIT_BYTES}"
        error = Defect(field="", reason="RequestEntityTooLarge", message=message, line=result.line)
        return _refusal(result, [error])
    # Decoded as in admission: values shared by YAML aliases become separate ones.
    value = with_namespace(msgspec.json.decode(body), namespace)
    undecodable = strict_errors(tree, node_of(version.declaration))
    misplaced = misplacement(result.namespace, namespace)
    deprecation = (version.deprecation_warning,) if version.deprecation_warning else ()
    result = replace(
        result,
        namespace=result.namespace or namespace,
        deprecation=version.deprecation_warning,
        warnings=deprecation,
    )
    judgement = complete_and_judge(kind, version, value)
    invalid = (*(judgement.errors or kept_errors(kind, version, value)), *_unscalable(version, value))
    errors = [
        *(_defect(error, tree) for error in misplaced),
        *_metadata_defects(tree, value),
        *(_defect(error, tree) for error in invalid),
    ]
    if undecodable or errors:
        hints = _fields_of_twins(kind, tree, undecodable)
        return _refusal(replace(result, warnings=(*deprecation, *hints)), errors, undecodable)
    complete: Json = without_nulls(node_of(version.declaration), value)
    advised = (*advice(kind, version, complete), *_namespace_advice(kind, complete))
    warnings = (*deprecation, *judgement.completion.warnings, *advised)
    return replace(result, verdict=CheckVerdict.VALID, warnings=warnings, value=complete)


def _fields_of_twins(kind: Kind, tree: Tree, undecodable: Sequence[Defect]) -> Iterator[str]:
    """Yield which of the unknown fields the kind of the same name in another group has."""
    for twin in KINDS:
        if undecodable and twin.kind == kind.kind and twin.group != kind.group:
            version = twin.storage_version
            remaining = frozenset(strict_errors(tree, node_of(version.declaration)))
            if remaining < frozenset(undecodable):  # it lacks no other field of the object
                known = ", ".join(defect.field for defect in undecodable if defect not in remaining)
                yield f"{known}: unknown in this group, but known in {twin.group}/{version.name}"


def _unscalable(version: Version, value: Json) -> Iterator[FieldError]:
    """Yield an error for each target whose kind admission does not allow to scale by default."""
    for claim in version.references(judge(version.declaration).typed_part(value)):
        error = listing_error(claim, SCALABLE) if claim.is_scaled else None
        if error is not None:
            yield error


def _namespace_advice(kind: Kind, value: Json) -> Iterator[str]:
    """Yield a warning for each field of a valid object that is only valid in one namespace.

    No warning is given if the namespace is known: a mismatch is then an error.
    """
    if kind is not AUTOSCALING_POLICY_BINDING or value["metadata"].get("namespace"):
        return
    for below, target in targets_of(value["spec"]):
        if target["targetRef"].get("namespace"):
            path = FieldPath(("spec", *below, "targetRef", "namespace"))
            yield f"{path}: is refused unless the binding is in that namespace"


def _judge_config_map(result: CheckResult, tree: Tree, namespace: str) -> CheckResult:
    """Return the result of a ConfigMap, whose name alone says whether it has settings."""
    names = NamesConfig()
    if are_settings(result.name, names):
        return _judge_settings(result, tree, names, result.namespace or namespace)
    known = (names.unit_costs, names.service_classes)
    if result.name.startswith(tuple(f"{name}-" for name in known)):
        return result  # further classes, to which objects refer by the ConfigMap's name
    close = nearest(result.name, known, likeness=_LIKENESS_OF_SETTINGS)
    why = f"ConfigMap/{result.name} was not checked: is {close} meant?" if close else ""
    return replace(result, unchecked=why)


def _judge_settings(result: CheckResult, tree: Tree, names: NamesConfig, namespace: str) -> CheckResult:
    """Return the result for settings, by the schema that the controller uses."""
    undecodable = strict_errors(tree, node_of(_ConfigMap))
    errors = list(_metadata_defects(tree, tree.value))
    for error in settings_errors(result.name, tree.value.get("data"), names):
        defect = _defect(error, tree)
        errors.append(replace(defect, line=_line_in_settings(tree, error.path)))
    if undecodable or errors:
        return _refusal(result, errors, undecodable)
    warnings = (f"is read only if Stowplan is installed in namespace {namespace}",)
    is_elsewhere = namespace not in {"", INSTALLATION}
    return replace(
        result, verdict=CheckVerdict.VALID, value=tree.value, warnings=warnings if is_elsewhere else ()
    )


def _line_in_settings(tree: Tree, path: FieldPath) -> int:
    """Return the line of a field within the text of its key, or that of the key if it is on one line."""
    data = tree.value.get("data")
    key = FieldPath.member(str(path.parts[1])) if len(path.parts) > 1 else ""
    first = tree.marks_of(data).texts.get(key)
    if first is None:
        return tree.line_of(FieldPath(path.parts[:2]))
    document = next(iter(read_documents(data[key].encode())), None)
    if isinstance(document, Tree):
        return first + document.line_of(FieldPath(path.parts[2:])) - 1
    return first + document.line - 1 if isinstance(document, UnreadableDocumentError) else first
