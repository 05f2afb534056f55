"""What the way back writes, held against the definitions that the releases themselves had."""

from __future__ import annotations

from typing import Final

import jsonschema
import pytest
import yaml
from oracles.releases import ERAS, HELD
from support.campaign import often
from support.variants import valid

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.kinds.llmd.shapes import RELEASES, in_shape
from apiserver.schema.json import Json

OBJECTS: Final = often(150)


def schema_of(release: str) -> Json:
    """Return the schema of a release's definition, without what only API servers read."""
    definition = yaml.load(
        (ERAS / f"{release}-definition.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    [entry] = definition["spec"]["versions"]
    found: Json = entry["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("release", [name for name in HELD if name in RELEASES])
def test_what_is_given_back_is_valid_in_the_release(release: str) -> None:
    """Of objects in either version: nothing that it demands is missing, nothing has a wrong type."""
    judge = jsonschema.Draft202012Validator(schema_of(release))
    for seed in range(OBJECTS):
        for version in (SPOKE, HUB):
            shaped = in_shape(valid(seed, version), RELEASES[release]).value
            # The texts of its status are drawn at random, where releases had patterns.
            shaped.pop("status", None)
            wrong = [f"{error.json_path}: {error.message}" for error in judge.iter_errors(shaped)]
            assert not wrong, (seed, version, wrong, shaped)
