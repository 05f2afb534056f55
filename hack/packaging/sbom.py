"""The software bill of materials of the image: CycloneDX, from the lock file used to build it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.markers import Marker

from hack.realnode.image import ROOT, base_reference

_ENTRY: Final = re.compile(r"^([\w.-]+)==(\S+)(?: ; (.*?))?(?: \\)?$")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA: Final = re.compile(r"^ +# +(?:via )?([\w.-]+)(?: \(pyproject\.toml\))?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """One entry of a lock file."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    """SHA-256 of every file that may be installed, on any platform."""

    wanted_by: tuple[str, ...]
    """Names of the entries that depend on it, possibly including the project itself."""


def locked_requirements(text: str) -> Iterator[Locked]:
    """Yield the entries of a lock file."""
    for block in re.split(r"^(?=\w)", text, flags=re.MULTILINE):
        lines = block.splitlines()
        if lines and (match := _ENTRY.match(lines[0])):
            vias = (via[1] for line in lines if (via := _VIA.match(line)) and via[1] != "via")
            yield Locked(
                name=match[1],
                version=match[2],
                marker=match[3] or "",
                hashes=tuple(_HASH.findall(block)),
                wanted_by=tuple(vias),
            )


def bill_of_materials(*, version: str, built_time: int) -> str:
    """Return the document as JSON, reproducibly. `built_time` is in seconds since 1970."""
    image, tag = base_reference().split(":")
    python = tag.partition("-")[0]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project = Component(name="stowplan", version=version, type=ComponentType.APPLICATION, bom_ref="stowplan")
    base = Component(
        name=image,
        version=tag,
        type=ComponentType.CONTAINER,
        purl=PackageURL("docker", name=image, version=tag),
        bom_ref=f"{image}:{tag}",
        description="Base of the image: its own packages are not listed here.",
    )
    entries = [entry for entry in locked_requirements(lock) if _is_installed(entry, python)]
    libraries = {entry.name: _library(entry) for entry in entries}
    bom = Bom(
        components=[base, *libraries.values()],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{version}\n{base_reference()}\n{lock}"),
    )
    bom.metadata.component = project
    bom.metadata.timestamp = datetime.fromtimestamp(built_time, UTC)
    bom.register_dependency(project, [base])
    for entry in entries:
        for name in entry.wanted_by:
            if wanting := {**libraries, "stowplan": project}.get(name):
                bom.register_dependency(wanting, [libraries[entry.name]])
    return f"{JsonV1Dot6(bom).output_as_string(indent=1)}\n"


def _is_installed(entry: Locked, python: str) -> bool:
    machine = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    return not entry.marker or Marker(entry.marker).evaluate(
        {**machine, "platform_python_implementation": "CPython", "implementation_name": "cpython"}
    )


def _library(entry: Locked) -> Component:
    return Component(
        name=entry.name,
        version=entry.version,
        type=ComponentType.LIBRARY,
        purl=PackageURL("pypi", name=entry.name, version=entry.version),
        bom_ref=f"{entry.name}=={entry.version}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=text) for text in entry.hashes],
    )
