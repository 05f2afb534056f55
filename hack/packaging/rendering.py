"""Kustomizations over folders of `manifests`, rendered as users would; the description of the project."""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from apiserver.schema.json import Json
from hack.controlplane.errors import KubectlFailedError

MANIFESTS: Final = Path(__file__).resolve().parents[2] / "manifests"
COMPONENTS: Final = "components/"
"""Prefix of components among the parts."""
OF_NAMESPACE: Final = "transformers/namespace"
"""Completes what `namespace:` of a kustomization changes."""

Name: TypeAlias = tuple[str, str]
"""Kind and name of an object."""


def project() -> dict[str, Any]:
    """Return the description of the project in pyproject.toml."""
    text = (MANIFESTS.parent / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def render(kubectl: Path, folder: Path) -> str:
    """Return kubectl's rendering of a folder. Raises KubectlFailedError with the error in it."""
    finished = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise KubectlFailedError(f"kubectl kustomize {folder}: {finished.stderr.strip()}")
    return finished.stdout


def installation(
    kubectl: Path, parts: Sequence[str], *, namespace: str, **settings: Any
) -> Mapping[Name, Json]:
    """Return the objects of the base with some parts, in a given namespace.

    Parts are folders of `manifests`. Components are applied in this order. `settings` are further fields of
    the kustomization.
    """
    components = [part for part in parts if part.startswith(COMPONENTS)]
    resources = ["base", *(part for part in parts if part not in components)]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        document = {
            "namespace": namespace,
            "resources": _paths(resources, folder),
            "components": _paths(components, folder),
            "transformers": _paths([OF_NAMESPACE], folder),
            **settings,
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        rendered = render(kubectl, folder)
    # The loader in C, because definitions are large and a chart reads them some twenty times.
    objects: list[Json] = list(yaml.load_all(rendered, Loader=yaml.CSafeLoader))
    return {(item["kind"], item["metadata"]["name"]): item for item in objects}


def _paths(parts: Iterable[str], folder: Path) -> list[str]:
    return [os.path.relpath(MANIFESTS / part, folder.resolve()) for part in parts]
