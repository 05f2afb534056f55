"""Objects for endpoint pickers about the requests of a route: their priority, and the engines' model name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from apiserver.kinds.annotations import REQUEST_PRIORITY
from apiserver.kinds.inference.inferenceobjective import POOL_GROUP, POOL_KIND
from apiserver.schema.json import Json
from controller.expansion.parts import Note, owned_metadata
from controller.gateways.annotations import priority
from controller.gateways.installed import API_VERSIONS, OBJECTIVES, REWRITES, Installed

_HEADER: Final = "x-gateway-inference-objective"
"""The header with a request's objective."""


def objectives(route: Json, pools: Sequence[str], installed: Installed) -> tuple[list[Json], list[Note]]:
    """Return an InferenceObjective for each pool of a route whose requests have a priority."""
    value, notes = priority(route)
    path = f"metadata.annotations[{REQUEST_PRIORITY}]"
    if value is None or not pools:
        return [], notes
    if OBJECTIVES not in installed.definitions:
        return [], [Note(path=path, text=f"{OBJECTIVES} are not served by this cluster")]
    if len(pools) > 1:
        text = f"a request names one objective in {_HEADER}, and each of the pools has another one"
        notes.append(Note(path=path, text=text))
    found = [
        _make(route, position, OBJECTIVES, "InferenceObjective", {"priority": value, "poolRef": _pool(name)})
        for position, name in enumerate(pools)
    ]
    return found, notes


def rewrites(route: Json, servers: Mapping[str, Json], installed: Installed) -> tuple[list[Json], list[Note]]:
    """Return an InferenceModelRewrite for each server whose model name differs from the route's.

    Requests that name an adapter are not changed.
    """
    asked = route["spec"].get("modelName")
    renaming = {
        name: server["spec"]["model"]
        for name, server in servers.items()
        if asked and server["spec"].get("model", asked) not in ("", asked)
    }
    if renaming and REWRITES not in installed.definitions:
        return [], [
            Note(
                path=f"ModelServer {name}: spec.model",
                text=f"requests go on to say {asked!r}, not {model!r}: {REWRITES} are not served by this"
                " cluster",
            )
            for name, model in renaming.items()
        ]
    found = []
    for position, (name, model) in enumerate(renaming.items()):
        rule = {
            "matches": [{"model": {"type": "Exact", "value": asked}}],
            "targets": [{"modelRewrite": model}],
        }
        spec = {"poolRef": _pool(name), "rules": [rule]}
        found.append(_make(route, position, REWRITES, "InferenceModelRewrite", spec))
    return found, []


def numbered_name(route: Json, position: int) -> str:
    """Return the name of an object made for a route; the first of a kind has the route's name."""
    name = str(route["metadata"]["name"])
    return f"{name}-{position + 1}" if position else name


def _make(route: Json, position: int, definition: str, kind: str, spec: Json) -> Json:
    return {
        "apiVersion": API_VERSIONS[definition],
        "kind": kind,
        "metadata": owned_metadata(route, numbered_name(route, position), {}),
        "spec": spec,
    }


def _pool(name: str) -> Json:
    return {"group": POOL_GROUP, "kind": POOL_KIND, "name": name}
