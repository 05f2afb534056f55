"""Which adapters may receive requests, according to the loaders' reports about their engines. Pure.

A new adapter is routed when all ready engines have loaded it, and removed from the route when no engine has
it any more. In between the route stays, so that one engine that cannot load an adapter does not affect the
others. Missing reports change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json
from controller.expansion.adapters import listed_adapters
from controller.expansion.parts import BACKEND_LABEL

Pair = tuple[str, str]
"""Names of a backend and of one of its adapters."""

_MOST_SHOWN: Final = 3
"""The number of pods for each adapter that are reported to fail; a condition has no room for more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """Report of the loader of one ready pod."""

    pod: str
    backend: str
    loaded: Mapping[str, str] = field(default_factory=dict)
    """Folders of the adapters that the engine has loaded, by name."""

    failed: Mapping[str, str] = field(default_factory=dict)
    """Why adapters are not loaded, by name."""

    silent: str = ""
    """Why there is no report; empty if there is one."""

    def lacks(self, wanted: Mapping[str, str]) -> list[str]:
        """Return the adapters that the engine is known to lack."""
        return [] if self.silent else [name for name in wanted if self.loaded.get(name) != wanted[name]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loading:
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


def loading(
    wanted: Mapping[str, Mapping[str, str]], reports: Sequence[Told], routed: Collection[Pair]
) -> Loading:
    """Return the state of adapters, from those wanted by backend, the reports, and those routed already."""
    unloaded: set[Pair] = set()
    awaited: list[str] = []
    troubles: list[str] = []
    for backend, paths in wanted.items():
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
    return Loading(unloaded=frozenset(unloaded), awaited=tuple(awaited), troubles=tuple(troubles))


def _led_to(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield the targets of requests for adapters: pairs of a server and an adapter."""
    adapters = frozenset(spec.get("loraAdapters") or [])
    for rule in spec.get("rules") or []:
        named = ((rule.get("modelMatch") or {}).get("body") or {}).get("model")
        asked = adapters if named is None else adapters & {named}
        for target in rule.get("targetModels") or []:
            # Definitions of other projects may not require the name.
            yield from ((str(target.get("modelServerName")), adapter) for adapter in asked)
