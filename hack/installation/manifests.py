"""The shipped manifests, as a control plane without nodes of its own can take them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent.parent

_NOT_HERE: Final = frozenset({"Deployment", "PodDisruptionBudget"})


def kustomization(folder: Path, *, manifests: str, namespace: str, source: Path = ROOT) -> Path:
    """Write what a user would to install a folder of ours, with the metrics API, into a namespace.

    `source` is the tree that has the manifests.
    """
    folder.mkdir(exist_ok=True)
    resources = [
        os.path.relpath(source / "manifests" / name, folder) for name in (manifests, "external-metrics")
    ]
    document = {"namespace": namespace, "resources": resources}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


def adapted(rendered: str, addresses: Mapping[str, str]) -> tuple[str, str]:
    """Return rendered manifests with Services that lead to loopback addresses, without our Deployments.

    The second text is the claim to external metrics, which is applied without force. `addresses` is by
    name of the Service. Ports stay: nothing translates them for an ExternalName.
    """
    kept = [
        _service(item, addresses) for item in yaml.safe_load_all(rendered) if item["kind"] not in _NOT_HERE
    ]
    claims = [item for item in kept if item["kind"] == "APIService"]
    others = [item for item in kept if item["kind"] != "APIService"]
    return yaml.safe_dump_all(others, sort_keys=False), yaml.safe_dump_all(claims, sort_keys=False)


def _service(manifest: dict[str, Any], addresses: Mapping[str, str]) -> dict[str, Any]:
    if manifest["kind"] != "Service":
        return manifest
    external = {"type": "ExternalName", "externalName": addresses[manifest["metadata"]["name"]]}
    return manifest | {"spec": external | {"ports": manifest["spec"]["ports"]}}
