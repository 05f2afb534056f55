"""The generated definitions against those of every release, and the list of what differs on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from oracles.comparison import GENERATED, Difference, differences, findings
from oracles.releases import Definition, definitions
from oracles.schemas import Facts, facts_of

from apiserver.kinds.registry import KINDS


@pytest.mark.parametrize("definition", definitions(), ids=str)
def test_what_a_release_demands_and_allows_is_generated(definition: Definition) -> None:
    """Fields, types, required marks, bounds, formats, choices, defaults; or a difference with its reason."""
    here = [finding for finding in findings() if finding.definition == definition]
    found = [str(one) for one in here if not any(reason.explains(one) for reason in differences())]

    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("difference", differences(), ids=str)
def test_every_difference_is_still_there(difference: Difference) -> None:
    """What no longer differs leaves the list, path by path and keyword by keyword."""
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


def test_every_kind_is_held_against_some_release() -> None:
    """In every version that is served."""
    held = {(definition.name, definition.version) for definition in definitions()}

    assert held == {(kind.crd_name, version.name) for kind in KINDS for version in kind.versions}


def test_the_generated_files_are_those_of_the_declarations() -> None:
    """One for each kind; that they are up to date is verified elsewhere."""
    names = {Path(path).stem for path in GENERATED.glob("*/*.yaml")}

    assert {kind.crd_name for kind in KINDS} <= names


SCHEMAS: dict[str, tuple[str, dict[str, Facts]]] = {
    "a format bounds an integer": (
        "properties: {a: {type: integer, format: int32, minimum: 0}}",
        {"a": {"type": "integer", "range": (0, 2**31 - 1)}},
    ),
    "bounds do it too": (
        "properties: {a: {type: integer, format: int64, minimum: 1, maximum: 4294967295}}",
        {"a": {"type": "integer", "range": (1, 2**32 - 1)}},
    ),
    "a default takes the demand from a required field": (
        "{required: [a, b], properties: {a: {type: string, default: x}, b: {type: string}}}",
        {"a": {"type": "string", "default": "x"}, "b": {"type": "string", "required": True}},
    ),
    "lists and maps have paths of their own": (
        "properties: {a: {type: array, items: {type: object, additionalProperties: {type: boolean}}}}",
        {"a": {"type": "list"}, "a[]": {"type": "map"}, "a[]{}": {"type": "boolean"}},
    ),
}


@pytest.mark.parametrize(("schema", "want"), SCHEMAS.values(), ids=SCHEMAS.keys())
def test_a_schema_is_read_as_what_it_demands(schema: str, want: dict[str, Facts]) -> None:
    """However it is written."""
    assert facts_of(yaml.safe_load(schema)) == want
