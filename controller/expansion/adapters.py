"""The sidecar of engines that load adapters at run time: a loader, and the list of adapters that it applies.

The program and the list are in a ConfigMap and not in the pod template. So a change restarts no pod, and
later pods start with the same adapters. The loader runs on the engine's image, because that contains the
download programs, and it calls only its own engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from apiserver.schema.json import Json
from controller.expansion.parts import SGLANG, Part, backend_name
from controller.expansion.weights import CACHE_PATH, FETCH, SOURCES_PATH, Weights

LOADER: Final = "adapters"
"""Name of the container, its port and its volume."""

LIST: Final = "adapters.json"
PROGRAM: Final = "loader.py"
_FOLDER: Final = "/adapters"
_PORTS: Final = (8100, 8101)
"""Ports of the loader's status pages; the second is used if the engine uses the first."""

_SOURCE: Final = Path(__file__).with_name("adapter_loader.py").read_text(encoding="utf-8")

_MEMBERS: Final = {"source", "path"}

_API: Final[Mapping[bool, Mapping[str, str]]] = {
    False: {"load": "/v1/load_lora_adapter", "unload": "/v1/unload_lora_adapter"},
    True: {"load": "/load_lora_adapter", "unload": "/unload_lora_adapter"},
}
"""API paths of vLLM (False) and of SGLang (True)."""


def loader(part: Part, weights: Weights) -> Json:
    """Return the loader container. The pod becomes ready when the loader has tried all adapters."""
    port = next(port for port in _PORTS if port != part.port)
    token = part.setting("api-key")
    options = {
        "host": "",
        "root": "",
        "port": port,
        "engine": f"http://127.0.0.1:{part.port}",
        "token": token if isinstance(token, str) else "",
        "list": f"{_FOLDER}/{LIST}",
        "cache": f"{CACHE_PATH}/",
        "folders": [f"{CACHE_PATH}/", f"{SOURCES_PATH}/"],
        "fetch": FETCH,
        **_API[part.engine == SGLANG],
    }
    return {
        "name": LOADER,
        "image": part.worker["image"],
        "command": ["python3", f"{_FOLDER}/{PROGRAM}", json.dumps(options, sort_keys=True)],
        "ports": [{"name": LOADER, "containerPort": port}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": port}, "periodSeconds": 5},
        "volumeMounts": [*weights.mounts, {"name": LOADER, "mountPath": _FOLDER, "readOnly": True}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **part.environment,
    }


def list_volume(part: Part) -> Json:
    """Return the volume with the list of adapters and the program."""
    return {"name": LOADER, "configMap": {"name": backend_name(part.model, part.backend)}}


def list_data(weights: Weights) -> dict[str, str]:
    """Return the data of a backend's ConfigMap: source and folder of each adapter, and the program."""
    entries = {
        name: {"source": weights.adapter_sources[name], "path": path}
        for name, path in weights.adapter_paths.items()
    }
    return {LIST: _text(entries), PROGRAM: _SOURCE}


def listed_adapters(config_map: Json) -> dict[str, Json]:
    """Return the listed adapters by name, without entries that are malformed."""
    try:
        entries = json.loads((config_map.get("data") or {}).get(LIST, ""))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(entries, dict):
        return {}
    return {
        name: item for name, item in entries.items() if isinstance(item, dict) and item.keys() >= _MEMBERS
    }


def with_entries(config_map: Json, entries: Mapping[str, Json]) -> Json:
    """Return a list with other entries."""
    return {**config_map, "data": {**config_map["data"], LIST: _text(entries)}}


def _text(entries: Mapping[str, Json]) -> str:
    return json.dumps(entries, indent=1, sort_keys=True)
