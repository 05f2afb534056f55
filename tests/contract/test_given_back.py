"""Objects that a downgrade writes, validated against the CRDs of the releases."""

from __future__ import annotations

from typing import Final

import jsonschema
import pytest
import yaml
from support.campaign import often
from support.variants import valid
from upstream_definitions.releases import ERAS, HELD

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.kinds.llmd.shapes import RELEASES, in_shape
from apiserver.schema.json import Json

OBJECTS: Final = often(150)


def schema_of(release: str) -> Json:
    """Return the OpenAPI schema in the CRD of a release."""
    definition = yaml.load(
        (ERAS / f"{release}-definition.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    [entry] = definition["spec"]["versions"]
    found: Json = entry["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("release", [name for name in HELD if name in RELEASES])
def test_a_downgraded_object_is_valid_in_the_release(release: str) -> None:
    """For objects in either version, no required field is missing, and no field has a wrong type."""
    judge = jsonschema.Draft202012Validator(schema_of(release))
    for seed in range(OBJECTS):
        for version in (SPOKE, HUB):
            shaped = in_shape(valid(seed, version), RELEASES[release]).value
            # Strings in the status are random here, where releases had patterns.
            shaped.pop("status", None)
            wrong = [f"{error.json_path}: {error.message}" for error in judge.iter_errors(shaped)]
            assert not wrong, (seed, version, wrong, shaped)
