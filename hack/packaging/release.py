"""The files of a release."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hack.packaging.archive import archive
from hack.packaging.chart import OPTIONS
from hack.packaging.rendering import MANIFESTS, render
from hack.packaging.sbom import bill_of_materials
from hack.realnode.image import shipped_reference

SUMS: Final = "SHA256SUMS"


def project_version() -> str:
    """Return the version of the project."""
    text = (MANIFESTS.parent / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def release_files(
    kubectl: Path, *, chart: Mapping[str, str], image: str = "", built_time: int = 0
) -> Mapping[str, bytes]:
    """Return every file by its name, reproducibly for the same sources on any machine.

    `chart` has the texts of `chart_files`. `image` is the reference that replaces the one in the manifests;
    `built_time` is in seconds since 1970.
    """
    shipped = shipped_reference()

    def with_image(text: str) -> bytes:
        return text.replace(f"image: {shipped}\n", f"image: {image or shipped}\n").encode()

    version = project_version()
    folders = {"install": "base"} | {name: name for name in OPTIONS}
    folders |= {path.name: f"overlays/{path.name}" for path in sorted((MANIFESTS / "overlays").iterdir())}
    files = {f"{name}.yaml": with_image(render(kubectl, MANIFESTS / path)) for name, path in folders.items()}
    packed = {path: with_image(text) for path, text in chart.items()}
    files[f"stowplan-{version}.tgz"] = archive(packed, folder="stowplan", built_time=built_time)
    bill = bill_of_materials(version=version, built_time=built_time)
    files[f"stowplan-{version}.cdx.json"] = bill.encode()
    sums = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return {**files, SUMS: "".join(sums).encode()}
