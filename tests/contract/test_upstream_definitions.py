"""The generated CRDs compared with those of every release, and the list of intended differences."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml
from upstream_definitions.comparison import Difference, differences, findings
from upstream_definitions.releases import Definition, definitions
from upstream_definitions.schemas import Facts, facts_of

from apiserver.kinds.registry import DEFINED, KINDS

GENERATED: Final = Path(__file__).resolve().parents[2] / "manifests" / "crds"


@pytest.mark.parametrize("definition", definitions(), ids=str)
def test_the_generated_schema_agrees_with_every_released_schema(definition: Definition) -> None:
    """Fields, types, required, bounds, formats, enums and defaults are equal, or a reason is listed."""
    here = [finding for finding in findings() if finding.definition == definition]
    found = [str(one) for one in here if not any(reason.explains(one) for reason in differences())]

    if found:
        hint = "if intended: add it, with a reason, to tests/upstream_definitions/differences.yaml"
        pytest.fail("\n".join([*found, hint]), pytrace=False)


@pytest.mark.parametrize("difference", differences(), ids=str)
def test_every_listed_difference_still_occurs(difference: Difference) -> None:
    """Paths and keywords that no longer differ must be removed from the list."""
    met = [finding for finding in findings() if difference.explains(finding)]

    assert difference.reason
    assert {finding.keyword for finding in met} == set(difference.keywords)
    for path in difference.paths:
        alone = Difference(
            releases=difference.releases,
            paths=(path,),
            keywords=difference.keywords,
            only=difference.only,
            reason=difference.reason,
        )
        assert any(alone.explains(finding) for finding in met), path


def test_every_kind_is_compared_with_a_release() -> None:
    """This includes every served version."""
    held = {(definition.name, definition.version) for definition in definitions()}

    assert held == {(kind.crd_name, version.name) for kind in KINDS for version in kind.versions}


def test_every_declared_kind_has_a_generated_file() -> None:
    """Another test checks that the files are up to date."""
    names = {path.stem for path in GENERATED.glob("*/*.yaml")}

    assert {kind.crd_name for kind in DEFINED} == names - {"kustomization"}


SCHEMAS: dict[str, tuple[str, dict[str, Facts]]] = {
    "a format bounds an integer": (
        "properties: {a: {type: integer, format: int32, minimum: 0}}",
        {"a": {"type": "integer", "range": (0, 2**31 - 1)}},
    ),
    "a minimum and a maximum bound an integer": (
        "properties: {a: {type: integer, format: int64, minimum: 1, maximum: 4294967295}}",
        {"a": {"type": "integer", "range": (1, 2**32 - 1)}},
    ),
    "a required field with a default is not required": (
        "{required: [a, b], properties: {a: {type: string, default: x}, b: {type: string}}}",
        {"a": {"type": "string", "default": "x"}, "b": {"type": "string", "required": True}},
    ),
    "items of lists and values of maps have their own paths": (
        "properties: {a: {type: array, items: {type: object, additionalProperties: {type: boolean}}}}",
        {"a": {"type": "list"}, "a[]": {"type": "map"}, "a[]{}": {"type": "boolean"}},
    ),
}


@pytest.mark.parametrize(("schema", "want"), SCHEMAS.values(), ids=SCHEMAS.keys())
def test_equivalent_schemas_have_the_same_facts(schema: str, want: dict[str, Facts]) -> None:
    """The facts are the effective constraints, regardless of the keywords that express them."""
    assert facts_of(yaml.safe_load(schema)) == want
