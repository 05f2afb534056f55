"""Checking of one object: whether its kind is ours, and how the API server and admission would respond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from apiserver.kinds.annotations import advice
from apiserver.kinds.conversion import kept_annotation
from apiserver.kinds.forms import form_errors, other_forms
from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from apiserver.kinds.scalable import SCALABLE, listing_error
from apiserver.kinds.settings_names import NamesConfig, are_settings
from apiserver.schema.document import nearest
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.metadata import metadata_errors
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.shape import without_nulls
from apiserver.schema.validation import judge
from controller.commands.check.matching import mismatch, other_release
from controller.commands.check.namespaces import misplacement, namespace_advice, with_namespace
from controller.commands.check.result import CheckResult, Finding, Verdict
from controller.commands.check.settings import judge_settings
from controller.commands.check.strictness import undecodable
from controller.commands.check.tree import Tree

_REQUEST_LIMIT_BYTES: Final = 3 * 1024 * 1024
"""The limit of `MaxRequestBodyBytes` in `k8s.io/apiserver/pkg/server/config.go`."""

_LIKENESS_OF_SETTINGS: Final = 0.9
"""The similarity from which the name of a ConfigMap is a typing error: service-class-config is one."""


def judge_object(tree: Tree, file: str, *, namespace: str = "") -> CheckResult:
    """Return the result of checking an object that has an `apiVersion` and `kind`.

    Its namespace is `namespace` if it has none itself; if that is empty too, it is unknown.
    """
    result = _unknown_kind(tree, file)
    if (result.api_version, result.kind) == ("v1", "ConfigMap"):
        return _judge_config_map(result, tree, namespace)
    found = find_version(result.api_version, result.kind)
    if found is not None:
        return _check_version(result, tree, *found, namespace=namespace)
    wrong = mismatch(result.api_version, result.kind)
    if wrong is None:
        why = other_release(result.api_version)
        named = f"{result.kind}/{result.name} was not checked: "
        return replace(result, unchecked=named + why) if why else result
    line = tree.line_of(FieldPath().child(wrong.field))
    finding = Finding(field=wrong.field, reason="NoMatch", message=wrong.message, line=line)
    return replace(result, verdict=Verdict.REFUSED, errors=(finding,))


def _judge_config_map(result: CheckResult, tree: Tree, namespace: str) -> CheckResult:
    """Return the result of a ConfigMap, whose name alone says whether it has settings."""
    names = NamesConfig()
    if are_settings(result.name, names):
        return judge_settings(result, tree, namespace)
    known = (names.unit_costs, names.service_classes)
    if result.name.startswith(tuple(f"{name}-" for name in known)):
        return result  # further classes, to which objects refer by the ConfigMap's name
    close = nearest(result.name, known, likeness=_LIKENESS_OF_SETTINGS)
    why = f"ConfigMap/{result.name} was not checked: is {close} meant?" if close else ""
    return replace(result, unchecked=why)


def _check_version(
    result: CheckResult, tree: Tree, kind: Kind, version: Version, *, namespace: str
) -> CheckResult:
    body = msgspec.json.encode({name: item for name, item in tree.value.items() if name != "status"})
    if len(body) > _REQUEST_LIMIT_BYTES:
        return replace(result, verdict=Verdict.REFUSED, errors=(_too_large(result),))
    unfit = tuple(undecodable(tree, node_of(version.declaration)))
    deprecation = (version.deprecation_warning,) if version.deprecation_warning else ()
    # Decoded as in admission: values shared by YAML aliases become separate ones.
    value = with_namespace(msgspec.json.decode(body), namespace)
    errors = [*_namespace_findings(result, tree, namespace), *_metadata(tree, value)]
    result = replace(result, namespace=result.namespace or namespace, deprecation=version.deprecation_warning)
    judgement = complete_and_judge(kind, version, value)
    found = (*(judgement.errors or _form_errors(kind, version, value)), *_unscalable(version, value))
    errors += [_finding(error, tree.line_of(error.path)) for error in found]
    if unfit or errors:
        return replace(
            result,
            verdict=Verdict.REFUSED,
            undecodable=unfit,
            errors=tuple(dict.fromkeys(errors)),  # both validate the types of metadata
            warnings=deprecation,
        )
    complete: Json = without_nulls(node_of(version.declaration), value)
    advised = (*advice(kind, version, complete), *namespace_advice(kind, complete))
    warnings = (*deprecation, *judgement.completion.warnings, *advised)
    return replace(result, verdict=Verdict.VALID, warnings=warnings, value=complete)


def _unknown_kind(tree: Tree, file: str) -> CheckResult:
    metadata = tree.value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return CheckResult(
        file=file,
        line=tree.line,
        verdict=Verdict.SKIPPED,
        api_version=tree.value["apiVersion"],
        kind=tree.value["kind"],
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
    )


def _metadata(tree: Tree, value: Json) -> Iterator[Finding]:
    for found in metadata_errors(value.get("metadata")):
        yield _finding(found.error, tree.line_of(found.culprit))


def _namespace_findings(result: CheckResult, tree: Tree, namespace: str) -> Iterator[Finding]:
    if message := misplacement(result.namespace, namespace):
        path = FieldPath().child("metadata", "namespace")
        yield Finding(field=str(path), reason="NamespaceMismatch", message=message, line=tree.line_of(path))


def _unscalable(version: Version, value: Json) -> Iterator[FieldError]:
    """Yield an error for each target whose kind admission does not allow to scale by default."""
    for claim in version.references(judge(version.declaration).fitting(value)):
        error = listing_error(claim, SCALABLE) if claim.is_scaled else None
        if error is not None:
            yield error


def _form_errors(kind: Kind, version: Version, value: Json) -> list[FieldError]:
    """Return the errors in what the annotation of conversion restores in other versions, if there is one."""
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or kept_annotation(kind) not in annotations:
        return []
    return form_errors(kind, other_forms(kind, version, value, None))


def _finding(error: FieldError, line: int) -> Finding:
    return Finding(field=str(error.path), reason=error.reason, message=error.body, line=line)


def _too_large(result: CheckResult) -> Finding:
    message = f"Request entity too large: limit is {_REQUEST_LIMIT_BYTES}"
    return Finding(field="", reason="RequestEntityTooLarge", message=message, line=result.line)
