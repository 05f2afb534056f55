"""The sidecar of engines that load adapters at run time: a loader, and the list of adapters that it applies.

The program and the list are in a ConfigMap and not in the pod template. So a change restarts no pod, and
later pods start with the same adapters. The loader runs on the engine's image, because that contains the
download programs, and it calls only its own engine.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from apiserver.schema.json import Json
from controller.expansion.parts import BACKEND_LABEL, SGLANG, Part
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


Pair = tuple[str, str]
"""Names of a backend and of one of its adapters."""

_MOST_SHOWN: Final = 3
"""The number of pods for each adapter that are reported to fail; a condition has no room for more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderReport:
    """Report of the loader of one ready pod."""

    pod: str
    backend: str
    loaded: Mapping[str, str] = field(default_factory=dict)
    """Folders of the adapters that the engine has loaded, by name."""

    failed: Mapping[str, str] = field(default_factory=dict)
    """Why adapters are not loaded, by name."""

    silent: str = ""
    """Why there is no report; empty if there is one."""

    def lacks(self, adapters: Mapping[str, str]) -> list[str]:
        """Return the adapters that the engine is known to lack."""
        return [] if self.silent else [name for name in adapters if self.loaded.get(name) != adapters[name]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterLoading:
    """State of the adapters of a Model that its engines load at run time."""

    unloaded: frozenset[Pair] = frozenset()
    """Adapters that must not receive requests."""

    awaited: tuple[str, ...] = ()
    """Adapters still to be loaded, as phrases."""

    troubles: tuple[str, ...] = ()
    """Adapters that cannot be loaded, as sentences."""

    @property
    def is_done(self) -> bool:
        """Whether no loader needs to be read again."""
        return not (self.awaited or self.troubles)


def wanted_paths(objects: Iterable[Json]) -> dict[str, dict[str, str]]:
    """Return the folders of the adapters that engines load at run time, by backend and adapter."""
    return {
        item["metadata"]["labels"][BACKEND_LABEL]: {
            name: str(entry["path"]) for name, entry in listed_adapters(item).items()
        }
        for item in objects
        if item["kind"] == "ConfigMap"
    }


def routed_pairs(objects: Iterable[Json]) -> frozenset[Pair]:
    """Return the pairs that routes lead to; the label of a ModelServer gives the backend."""
    items = list(objects)
    backends = {
        item["metadata"]["name"]: str((item["metadata"].get("labels") or {}).get(BACKEND_LABEL, ""))
        for item in items
        if item["kind"] == "ModelServer"
    }
    routes = [item.get("spec") or {} for item in items if item["kind"] == "ModelRoute"]
    return frozenset(
        (backends.get(server, ""), adapter) for spec in routes for server, adapter in _led_to(spec)
    )


def adapter_loading(
    adapters: Mapping[str, Mapping[str, str]], reports: Sequence[LoaderReport], routed: Collection[Pair]
) -> AdapterLoading:
    """Return the state of adapters, from those wanted by backend, the reports, and those routed already.

    A new adapter is routed when all ready engines have loaded it, and no longer when no engine has it any
    more. In between the route stays, so that one engine that cannot load an adapter does not affect the
    others. Missing reports change nothing.
    """
    unloaded: set[Pair] = set()
    awaited: list[str] = []
    troubles: list[str] = []
    for backend, paths in adapters.items():
        engines = [item for item in reports if item.backend == backend]
        silent = [item for item in engines if item.silent]
        lacks = [(item, frozenset(item.lacks(paths))) for item in engines]
        for name in paths:
            lacking = [item for item, names in lacks if name in names]
            if (backend, name) in routed:
                is_out = bool(engines) and len(lacking) == len(engines)
            else:
                is_out = bool(lacking or silent)
            if is_out:
                unloaded.add((backend, name))
            failing = [item for item in lacking if name in item.failed]
            troubles += [
                f"adapter {name} is not loaded in pod {item.pod}: {item.failed[name]}"
                for item in failing[:_MOST_SHOWN]
            ]
            if waiting := [item.pod for item in lacking if name not in item.failed]:
                awaited.append(
                    f"adapter {name} to be loaded in {len(waiting)} of {len(engines)} pods of {backend}"
                )
        troubles += [
            f"container adapters of pod {item.pod} does not report what is loaded: {item.silent}"
            for item in silent[:_MOST_SHOWN]
        ]
    return AdapterLoading(unloaded=frozenset(unloaded), awaited=tuple(awaited), troubles=tuple(troubles))


def _led_to(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield the targets of requests for adapters: pairs of a server and an adapter."""
    adapters = frozenset(spec.get("loraAdapters") or [])
    for rule in spec.get("rules") or []:
        named = ((rule.get("modelMatch") or {}).get("body") or {}).get("model")
        requested = adapters if named is None else adapters & {named}
        for target in rule.get("targetModels") or []:
            # Definitions of other projects may not require the name.
            yield from ((str(target.get("modelServerName")), adapter) for adapter in requested)
