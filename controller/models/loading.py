"""Which adapters requests may be sent to, by what loaders tell of their engines. Pure.

A route gets a new adapter when every engine that is ready has it, and loses one that no engine has any more.
In between it stays as it is: one engine that cannot load an adapter takes it from nobody else. What an engine
does not tell changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.schema.json import Json
from controller.models.adapters import listed
from controller.models.parts import BACKEND_LABEL

Pair = tuple[str, str]
"""A backend, and an adapter of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the loader of one pod that is ready tells."""

    pod: str
    backend: str
    loaded: Mapping[str, str] = field(default_factory=dict)
    """The folder of each adapter that the engine has, by name."""

    failed: Mapping[str, str] = field(default_factory=dict)
    """Why an adapter is not loaded, by name."""

    silent: str = ""
    """Why nothing is known; empty where it is."""

    def lacks(self, wanted: Mapping[str, str]) -> list[str]:
        """Return the adapters that the engine does not have, as far as it is known."""
        return [] if self.silent else [name for name in wanted if self.loaded.get(name) != wanted[name]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loading:
    """How the adapters of a Model stand that its engines load while they run."""

    unloaded: frozenset[Pair] = frozenset()
    """What no request is to be sent to."""

    awaited: tuple[str, ...] = ()
    """What is still to be loaded, in phrases."""

    troubles: tuple[str, ...] = ()
    """What cannot be loaded, in sentences."""

    @property
    def is_done(self) -> bool:
        """Whether no loader has to be asked again."""
        return not (self.awaited or self.troubles)


def wanted_paths(objects: Iterable[Json]) -> dict[str, dict[str, str]]:
    """Return by backend the folder of each adapter that its engines load while they run."""
    return {
        item["metadata"]["labels"][BACKEND_LABEL]: {
            name: str(entry["path"]) for name, entry in listed(item).items()
        }
        for item in objects
        if item["kind"] == "ConfigMap"
    }


def routed_pairs(objects: Iterable[Json]) -> frozenset[Pair]:
    """Return where routes lead to, by the label of each ModelServer for its backend."""
    items = list(objects)
    backends = {
        item["metadata"]["name"]: str(item["metadata"]["labels"].get(BACKEND_LABEL, ""))
        for item in items
        if item["kind"] == "ModelServer"
    }
    routes = [item["spec"] for item in items if item["kind"] == "ModelRoute"]
    return frozenset(
        (backends.get(server, ""), adapter) for spec in routes for server, adapter in _led_to(spec)
    )


def loading(
    wanted: Mapping[str, Mapping[str, str]], told: Sequence[Told], routed: Collection[Pair]
) -> Loading:
    """Return how adapters stand: `wanted` by backend, what loaders tell, and what is routed already."""
    unloaded: set[Pair] = set()
    awaited: list[str] = []
    troubles: list[str] = []
    for backend, paths in wanted.items():
        engines = [item for item in told if item.backend == backend]
        for name in paths:
            lacking = [item for item in engines if name in item.lacks(paths)]
            unknown = [item for item in engines if item.silent]
            if (backend, name) in routed:
                is_out = bool(engines) and len(lacking) == len(engines)
            else:
                is_out = bool(lacking or unknown)
            if is_out:
                unloaded.add((backend, name))
            troubles += [
                f"adapter {name} is not loaded in pod {item.pod}: {item.failed[name]}"
                for item in lacking
                if name in item.failed
            ]
            if waiting := [item.pod for item in lacking if name not in item.failed]:
                awaited.append(
                    f"adapter {name} to be loaded in {len(waiting)} of {len(engines)} pods of {backend}"
                )
        troubles += [
            f"container adapters of pod {item.pod} does not report what is loaded: {item.silent}"
            for item in engines
            if item.silent
        ]
    return Loading(unloaded=frozenset(unloaded), awaited=tuple(awaited), troubles=tuple(troubles))


def _led_to(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield what requests of adapters are sent to: a server, and the adapter."""
    for rule in spec.get("rules") or []:
        named = ((rule.get("modelMatch") or {}).get("body") or {}).get("model")
        for target in rule.get("targetModels") or []:
            for adapter in spec.get("loraAdapters") or []:
                if named in (None, adapter):
                    yield target["modelServerName"], adapter
