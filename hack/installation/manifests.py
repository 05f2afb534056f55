"""The shipped manifests, adapted to a control plane without real nodes."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from apiserver.schema.json import Json

ROOT: Final = Path(__file__).resolve().parent.parent.parent

EXTERNAL_METRICS: Final = ("external.metrics.k8s.io", "v1beta1")
"""API group and version."""

_NOT_HERE: Final = frozenset({"Deployment", "PodDisruptionBudget"})


def kustomization(
    folder: Path, *, manifests: str, namespace: str, source: Path = ROOT, components: Iterable[str] = ()
) -> None:
    """Write a kustomization, as a user would, that installs a folder and the metrics API in a namespace.

    `source` is the tree with the manifests, `components` are names in its folder of components.
    """
    folder.mkdir(exist_ok=True)
    folders = {
        "resources": (manifests, "external-metrics"),
        "components": tuple(f"components/{name}" for name in components),
    }
    paths = {
        member: [os.path.relpath(source / "manifests" / name, folder) for name in names]
        for member, names in folders.items()
    }
    document = {"namespace": namespace, **paths}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def adapt(rendered: str, addresses: Mapping[str, str]) -> list[Json]:
    """Return rendered manifests with Services for loopback addresses and without our Deployments.

    `addresses` is by Service name. Ports stay the same, because an ExternalName does not translate them.
    """
    return [
        _service(item, addresses)
        for item in yaml.load_all(rendered, Loader=yaml.CSafeLoader)
        if item["kind"] not in _NOT_HERE
    ]


def documents(items: Iterable[Json]) -> str:
    """Return manifests as documents for kubectl: it reads JSON in half the time of YAML.

    They are no List: kubectl validates that by the OpenAPI document of all kinds, which takes the API server
    half a second after a definition has changed.
    """
    return "\n".join(map(json.dumps, items))


def registration(group: str, version: str, service: Json, *, authorities: bytes | None) -> Json:
    """Return an APIService: who serves a version of an API group.

    `authorities` in PEM sign the server's certificate; None: it is not verified.
    """
    trust: Json = {"insecureSkipTLSVerify": True}
    if authorities is not None:
        trust = {"caBundle": base64.b64encode(authorities).decode()}
    served: Json = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": served | {"service": service} | trust,
    }


def _service(manifest: dict[str, Any], addresses: Mapping[str, str]) -> dict[str, Any]:
    if manifest["kind"] != "Service":
        return manifest
    external = {"type": "ExternalName", "externalName": addresses[manifest["metadata"]["name"]]}
    return manifest | {"spec": external | {"ports": manifest["spec"]["ports"]}}
