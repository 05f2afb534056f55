"""The image is reproducible, and its bill of materials is complete."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from hack.controlplane.progress import ProgressLine
from hack.packaging.sbom import bill_of_materials
from hack.realnode.image import ROOT, build_again

if TYPE_CHECKING:
    from pathlib import Path

    from support.installed import Installed

pytestmark = pytest.mark.e2e

INPUTS = ("apiserver", "webhooks", "controller", "pyproject.toml", "README.md", "LICENSE", "Dockerfile")
DISTRIBUTIONS = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}))"
)


def test_two_builds_of_the_same_sources_have_the_same_image(installed: Installed, tmp_path: Path) -> None:
    """Other times and modes of files and an empty build cache do not change a byte."""
    for path in (*(ROOT / name for name in INPUTS), *ROOT.glob("requirements*.lock")):
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, tmp_path / path.name, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(path, tmp_path / path.name)
    for path in tmp_path.rglob("*.py"):
        path.chmod(0o600)

    first, second = build_again(tmp_path, ProgressLine())

    assert second == first


def test_the_bill_of_materials_lists_exactly_the_distributions_in_the_image(installed: Installed) -> None:
    """Names and versions are equal."""
    (pod, *_) = installed.names("controller")
    inside = json.loads(installed.inside(pod, "python", "-c", DISTRIBUTIONS).stdout)
    listed = json.loads(bill_of_materials(version=inside["stowplan"], built_time=0))["components"]

    del inside["stowplan"]
    assert inside == {item["name"]: item["version"] for item in listed if item["type"] == "library"}
