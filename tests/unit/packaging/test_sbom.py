"""The bill of materials: valid, of what is installed, and equal for equal sources."""

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
    """Make one."""
    return bill_of_materials(version="1.2.3", built_time=WHEN)


def test_it_is_valid_by_the_schema_of_its_format(text: str) -> None:
    """And the validator finds what is wrong with another one."""
    validator = JsonStrictValidator(SchemaVersion.V1_6)

    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"purl"', '"url"')) is not None


def test_it_names_what_is_installed(text: str) -> None:
    """Every library has hashes, and the version that this environment has by the same lock."""
    components: list[dict[str, Any]] = json.loads(text)["components"]
    libraries = {item["name"]: item for item in components if item["type"] == "library"}

    assert len(libraries) == len(components) - 1  # and the base of the image
    assert {"ortools", "aiohttp", "numpy"} < libraries.keys()
    for name, item in libraries.items():
        assert item["version"] == version(name)
        assert item["hashes"]


def test_it_says_what_needs_what(text: str) -> None:
    """From the project to its libraries, and on to theirs."""
    document = json.loads(text)
    needs = {item["ref"].partition("==")[0]: item.get("dependsOn", []) for item in document["dependencies"]}

    assert f"ortools=={version('ortools')}" in needs["stowplan"]
    assert f"protobuf=={version('protobuf')}" in needs["ortools"]


def test_the_same_lock_file_makes_the_same_document(text: str) -> None:
    """Serial number and time included."""
    assert bill_of_materials(version="1.2.3", built_time=WHEN) == text
