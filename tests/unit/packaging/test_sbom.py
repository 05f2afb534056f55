"""The bill of materials: valid, complete, and reproducible."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from hack.packaging.sbom import bill_of_materials

WHEN = 1_790_000_000


@pytest.fixture(scope="module")
def text() -> str:
    """Return a bill of materials."""
    return bill_of_materials(version="1.2.3", built_time=WHEN)


def test_the_document_is_valid_by_the_schema_of_its_format(text: str) -> None:
    """The validator rejects a document with an invalid field."""
    validator = JsonStrictValidator(SchemaVersion.V1_6)

    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"purl"', '"url"')) is not None


def test_the_document_lists_the_installed_libraries(text: str) -> None:
    """Each library has hashes and the version of this environment, which the same lock file defines."""
    components: list[dict[str, Any]] = json.loads(text)["components"]
    libraries = {item["name"]: item for item in components if item["type"] == "library"}

    assert len(libraries) == len(components) - 1  # plus the base image
    assert {"ortools", "aiohttp", "numpy"} < libraries.keys()
    for name, item in libraries.items():
        assert item["version"] == version(name)
        assert item["hashes"]


def test_the_document_contains_the_dependencies(text: str) -> None:
    """They are those of the project and of its libraries."""
    document = json.loads(text)
    needs = {item["ref"].partition("==")[0]: item.get("dependsOn", []) for item in document["dependencies"]}

    assert f"ortools=={version('ortools')}" in needs["stowplan"]
    assert f"protobuf=={version('protobuf')}" in needs["ortools"]


def test_the_same_lock_file_makes_the_same_document(text: str) -> None:
    """Serial number and time are equal, too."""
    assert bill_of_materials(version="1.2.3", built_time=WHEN) == text
