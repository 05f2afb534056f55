"""Schemas for editors: valid in their dialect, as strict as the declarations, and stricter about names."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from differential.compare import name_of
from jsonschema import Draft7Validator
from support.samples import REFUSED, SAMPLES, VALID

from apiserver.kinds.registry import KINDS, find_version
from apiserver.schema.editor import editor_schema
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.validation import judge

VERSIONS = {name_of(kind, version): (kind, version) for kind in KINDS for version in kind.versions}
ONLY_RE2 = re.compile(r"\(\?(?![:=!])|\[\[:|\\[^dDwWsSbBfnrtv0-9^$\\.*+?()\[\]{}|/-]")
"""Syntax that ECMA's expressions lack: flags, Python's named groups, POSIX classes and other escapes."""


def ours(paths: Sequence[Path]) -> Iterator[tuple[str, Json]]:
    """Yield each manifest of our kinds with the name of its file."""
    for path in paths:
        for manifest in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            if find_version(manifest["apiVersion"], manifest["kind"]) is not None:
                yield str(path.relative_to(SAMPLES)), manifest


def version_of(manifest: Json) -> tuple[Kind, Version]:
    """Return the kind and the version of a manifest."""
    found = find_version(manifest["apiVersion"], manifest["kind"])
    assert found is not None
    return found


def breaks_a_keyword(manifest: Json) -> bool:
    """Tell whether the schema alone, without rules, rejects a manifest."""
    return not judge(version_of(manifest)[1].declaration).is_valid(manifest)


GOOD = [pytest.param(manifest, id=name) for name, manifest in ours(VALID)]
BAD = [pytest.param(manifest, id=name) for name, manifest in ours(REFUSED) if breaks_a_keyword(manifest)]


def errors_of(manifest: Json) -> list[str]:
    """Return the errors that an editor would show."""
    validator = Draft7Validator(editor_schema(*version_of(manifest)))
    return [error.message for error in validator.iter_errors(manifest)]


def schemas_below(schema: Json) -> Iterator[Json]:
    """Yield a schema and all schemas inside it."""
    yield schema
    for inner in [*schema.get("properties", {}).values(), *(schema[k] for k in ("items",) if k in schema)]:
        yield from schemas_below(inner)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from schemas_below(schema["additionalProperties"])


def misspelt(schema: Json, manifest: Json) -> Iterator[Json]:
    """Yield copies of a manifest, each with an undeclared field in one declared object."""
    if schema.get("additionalProperties") is False:
        yield manifest | {"replicase": 1}
    for name, value in manifest.items():
        inner = schema.get("properties", {}).get(name, {})
        if isinstance(value, dict):
            yield from (manifest | {name: changed} for changed in misspelt(inner, value))
        if isinstance(value, list):
            for position, item in enumerate(value):
                below = misspelt(inner.get("items", {}), item) if isinstance(item, dict) else ()
                yield from (
                    manifest | {name: [*value[:position], changed, *value[position + 1 :]]}
                    for changed in below
                )


@pytest.mark.parametrize(("kind", "version"), VERSIONS.values(), ids=VERSIONS.keys())
def test_a_schema_is_valid_in_its_dialect(kind: Kind, version: Version) -> None:
    """Draft 7 defines every keyword, and ECMA supports every pattern."""
    schema = editor_schema(kind, version)

    Draft7Validator.check_schema(schema)
    for inner in schemas_below(schema):
        assert not any(name.startswith("x-kubernetes-") for name in inner)
        assert not ONLY_RE2.search(inner.get("pattern", ""))


@pytest.mark.parametrize(("kind", "version"), VERSIONS.values(), ids=VERSIONS.keys())
def test_every_field_has_a_description(kind: Kind, version: Version) -> None:
    """Editors show it at completion."""
    for inner in schemas_below(editor_schema(kind, version)):
        for name, field in inner.get("properties", {}).items():
            assert field.get("description"), name


@pytest.mark.parametrize("manifest", GOOD)
def test_a_valid_sample_has_no_errors_in_an_editor(manifest: Json) -> None:
    """An editor accepts what a cluster accepts."""
    assert errors_of(manifest) == []


@pytest.mark.parametrize("manifest", BAD)
def test_an_invalid_sample_has_errors_in_an_editor(manifest: Json) -> None:
    """What a schema keyword can express is checked without a cluster."""
    assert errors_of(manifest) != []


@pytest.mark.parametrize("manifest", GOOD)
def test_a_misspelled_field_is_an_error_at_any_depth(manifest: Json) -> None:
    """This holds in every declared object; free-form JSON allows any field."""
    changed = list(misspelt(editor_schema(*version_of(manifest)), manifest))

    assert len(changed) > 1
    for wrong in changed:
        assert errors_of(wrong) == ["Additional properties are not allowed ('replicase' was unexpected)"]


@pytest.mark.parametrize(
    ("metadata", "is_fine"),
    [
        pytest.param({"name": "a"}, True, id="a name"),
        pytest.param({"generateName": "a-"}, True, id="a generated name"),
        pytest.param({"name": "a", "finalizers": []}, True, id="a name and another field"),
        pytest.param({}, False, id="no name"),
        pytest.param({"name": "a", "labels": {"a": 1}}, False, id="a label that is a number"),
    ],
)
def test_metadata_is_open_but_must_name_the_object(metadata: Json, *, is_fine: bool) -> None:
    """Only fields that every object needs are checked."""
    manifest = copy.deepcopy(next(manifest for _, manifest in ours(VALID))) | {"metadata": metadata}

    assert (errors_of(manifest) == []) is is_fine


def test_rules_without_a_schema_keyword_are_described() -> None:
    """The description of a field ends with them."""
    kind, version = VERSIONS["AutoscalingPolicyBinding/v1alpha1"]
    schema = editor_schema(kind, version)

    spec = schema["properties"]["spec"]
    assert spec["description"].endswith(
        "Exactly one of `scalingConfiguration` and `optimizerConfiguration` is set."
    )
    policy = editor_schema(*VERSIONS["AutoscalingPolicy/v1alpha1"])["properties"]["spec"]["properties"]
    assert policy["metrics"]["description"].endswith("Unique by `metricName`.")
    assert policy["metrics"]["items"]["properties"]["targetValue"]["anyOf"] == [
        {"type": "integer"},
        {"type": "string"},
    ]
