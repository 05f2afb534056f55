"""The shipped manifests, as a control plane without nodes of its own can take them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent.parent

_NOT_HERE: Final = frozenset({"Deployment", "PodDisruptionBudget"})


def adapted(rendered: str, addresses: Mapping[str, str]) -> str:
    """Return rendered manifests with Services that lead to loopback addresses, without our Deployments.

    `addresses` is by name of the Service. Ports stay: nothing translates them for an ExternalName.
    """
    kept = [
        _service(item, addresses) for item in yaml.safe_load_all(rendered) if item["kind"] not in _NOT_HERE
    ]
    return yaml.safe_dump_all(kept, sort_keys=False)


def _service(manifest: dict[str, Any], addresses: Mapping[str, str]) -> dict[str, Any]:
    if manifest["kind"] != "Service":
        return manifest
    external = {"type": "ExternalName", "externalName": addresses[manifest["metadata"]["name"]]}
    return manifest | {"spec": external | {"ports": manifest["spec"]["ports"]}}
