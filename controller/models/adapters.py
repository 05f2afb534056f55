"""What stands beside an engine that loads adapters while it runs: a loader, and the list that it follows.

The list is in a ConfigMap, and so no part of the pods: a change of it restarts none, and one that starts
later comes up with the same adapters. The loader is a program of ours on the engine's image, since what
fetches weights is there. It speaks to its own engine only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from apiserver.schema.json import Json
from controller.models.parts import SGLANG, Part, backend_name
from controller.models.weights import CACHE_PATH, FETCH, SOURCES_PATH, Weights

LOADER: Final = "adapters"
"""The container, its port and its volume."""

_LIST: Final = "adapters.json"
_LIST_PATH: Final = "/adapters"
_PORTS: Final = (8100, 8101)
"""Where the loader tells how it stands: on the second one where the engine has the first."""

_PROGRAM: Final = Path(__file__).with_name("adapter_loader.py").read_text(encoding="utf-8")

_API: Final[Mapping[bool, Mapping[str, str]]] = {
    False: {"load": "/v1/load_lora_adapter", "unload": "/v1/unload_lora_adapter"},
    True: {"load": "/load_lora_adapter", "unload": "/unload_lora_adapter"},
}
"""Of vLLM and of SGLang."""


def loader(part: Part, weights: Weights) -> Json:
    """Return the container that loads adapters. The pod is ready when it has tried each of them."""
    port = next(port for port in _PORTS if port != part.port)
    token = part.setting("api-key")
    options = {
        "host": "",
        "root": "",
        "port": port,
        "engine": f"http://127.0.0.1:{part.port}",
        "token": token if isinstance(token, str) else "",
        "list": f"{_LIST_PATH}/{_LIST}",
        "cache": f"{CACHE_PATH}/",
        "folders": [f"{CACHE_PATH}/", f"{SOURCES_PATH}/"],
        "fetch": FETCH,
        **_API[part.engine == SGLANG],
    }
    container: Json = {
        "name": LOADER,
        "image": part.worker["image"],
        "command": ["python3", "-c", _PROGRAM, json.dumps(options, sort_keys=True)],
        "ports": [{"name": LOADER, "containerPort": port}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": port}, "periodSeconds": 5},
        "volumeMounts": [*weights.mounts, {"name": LOADER, "mountPath": _LIST_PATH, "readOnly": True}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    for member in ("env", "envFrom"):
        if part.backend.get(member):
            container[member] = part.backend[member]
    return container


def list_volume(part: Part) -> Json:
    """Return the volume with the list of adapters."""
    return {"name": LOADER, "configMap": {"name": backend_name(part.model, part.backend)}}


def list_data(weights: Weights) -> dict[str, str]:
    """Return what the ConfigMap of a backend has: where each adapter is fetched from, and its folder."""
    return _data(
        {
            name: {"source": weights.adapter_sources[name], "path": path}
            for name, path in weights.adapter_paths.items()
        }
    )


def listed(config_map: Json) -> dict[str, Json]:
    """Return the adapters of a list by name; none of one that somebody spoiled."""
    try:
        entries = json.loads((config_map.get("data") or {}).get(_LIST, ""))
    except ValueError:
        return {}
    return entries if isinstance(entries, dict) else {}


def with_entries(config_map: Json, entries: Mapping[str, Json]) -> Json:
    """Return a list with other entries."""
    return {**config_map, "data": _data(entries)}


def _data(entries: Mapping[str, Json]) -> dict[str, str]:
    return {_LIST: json.dumps(entries, indent=1, sort_keys=True)}
