"""The files of a release."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hack.packaging.chart import OPTIONS
from hack.packaging.rendering import MANIFESTS, project, render
from hack.packaging.sbom import bill_of_materials
from hack.realnode.image import shipped_reference

SUMS: Final = "SHA256SUMS"


def release_files(
    kubectl: Path, *, chart: Mapping[str, str], image: str = "", built_time: int = 0
) -> Mapping[str, bytes]:
    """Return every file by its name, reproducibly for the same sources on any machine.

    `chart` has the texts of `chart_files` for the same image. `image` is the reference that replaces the one
    in the manifests; `built_time` is in seconds since 1970.
    """
    shipped = shipped_reference()

    def with_image(text: str) -> bytes:
        return text.replace(f"image: {shipped}\n", f"image: {image or shipped}\n").encode()

    version = project()["version"]
    folders = {"install": "base"} | {name: name for name in OPTIONS}
    folders |= {path.name: f"overlays/{path.name}" for path in sorted((MANIFESTS / "overlays").iterdir())}
    files = {f"{name}.yaml": with_image(render(kubectl, MANIFESTS / path)) for name, path in folders.items()}
    packed = {path: text.encode() for path, text in chart.items()}
    files[f"stowplan-{version}.tgz"] = _archive(packed, folder="stowplan", built_time=built_time)
    bill = bill_of_materials(version=version, built_time=built_time)
    files[f"stowplan-{version}.cdx.json"] = bill.encode()
    sums = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return {**files, SUMS: "".join(sums).encode()}


def _archive(files: Mapping[str, bytes], *, folder: str, built_time: int) -> bytes:
    """Return a reproducible .tgz of files in a folder, all with one time and without an owner."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as opened,
    ):
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mtime, entry.mode = len(content), built_time, 0o644
            opened.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
