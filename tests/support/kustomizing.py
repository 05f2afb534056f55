"""Rendering of kustomizations as users write them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from controller.commands.uninstall.installed import REMOVED, WEBHOOK_CONFIGURATIONS
from hack.controlplane import ControlPlane
from hack.installation.manifests import ROOT

MANIFESTS = ROOT / "manifests"
CLUSTER_SCOPED = {it.kind for it in (*REMOVED, *WEBHOOK_CONFIGURATIONS) if not it.namespaced} | {
    "APIService",
    "CustomResourceDefinition",
    "Namespace",
}
"""The kinds of our manifests that are in no namespace."""
NO_OBJECTS = {
    "Kustomization",
    "Component",
    "KubeSchedulerConfiguration",
    "PatchTransformer",
    "ReplacementTransformer",
}
"""The kinds of documents in our manifests that are applied to no cluster."""


def documents() -> list[tuple[Path, dict[str, Any]]]:
    """Read all that is shipped but the samples, with the file of each document."""
    return [
        (path, item)
        for path in sorted(MANIFESTS.rglob("*.yaml"))
        if "samples" not in path.parts
        for item in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        if "kind" in item
    ]


def kustomized(
    plane: ControlPlane,
    folder: Path,
    *,
    resources: Sequence[str | Path],
    components: Sequence[str] = (),
    transformers: Sequence[str] = (),
    **fields: Any,
) -> list[dict[str, Any]]:
    """Return kubectl's rendering of a kustomization over our folders."""
    document = {
        "resources": [os.path.relpath(MANIFESTS / name, folder) for name in resources],
        "components": [os.path.relpath(MANIFESTS / name, folder) for name in components],
        "transformers": [os.path.relpath(MANIFESTS / name, folder) for name in transformers],
        **fields,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return list(yaml.load_all(plane.kubectl("kustomize", str(folder)).stdout, Loader=yaml.CSafeLoader))
