"""Every sample that we ship is valid by our own judge."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import defaulted
from apiserver.schema.validation import validate

SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples"
FILES = [path for path in sorted(SAMPLES.rglob("*.yaml")) if "refused" not in path.parts]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_sample_has_no_errors(path: Path) -> None:
    """Manifests of our kinds are valid; others are none of our business."""
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        found = find_version(manifest["apiVersion"], manifest["kind"])
        if found is not None:
            assert validate(found[1].declaration, defaulted(found[1], manifest)) == []


REFUSED = [path for path in sorted(SAMPLES.rglob("*.yaml")) if "refused" in path.parts]


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_counter_example_is_refused(path: Path) -> None:
    """What is to be refused has errors."""
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        found = find_version(manifest["apiVersion"], manifest["kind"])
        assert found is not None
        assert validate(found[1].declaration, manifest) != []
