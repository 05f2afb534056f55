"""Annotations about Gateways on ModelRoutes, ModelServers and Namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.annotations import ENDPOINT_PICKER, PARENT_REFS, REQUEST_PRIORITY
from apiserver.schema.json import Json
from controller.expansion.parts import Note

DEFAULT_PICKER_PORT: Final = 9002
"""Default port of an endpoint picker of the Inference Extension."""

_GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
_MOST_PARENTS: Final = 32
_NAME: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_PARENT: Final = re.compile(
    rf"((?P<namespace>{_NAME})/)?(?P<name>{_NAME}(\.{_NAME})*)(/(?P<listener>{_NAME}(\.{_NAME})*))?\Z"
)
_PICKER: Final = re.compile(r"(?P<name>[a-z]([-a-z0-9]{0,61}[a-z0-9])?)(:(?P<port>[1-9][0-9]{0,4}))?\Z")
_PRIORITY: Final = re.compile(r"-?[0-9]{1,10}\Z")
_PRIORITIES: Final = range(-(2**31), 2**31)
_HIGHEST_PORT: Final = 65535


def is_opted_in(route: Json, namespace: Json | None) -> bool:
    """Tell whether a route is to be served by Gateways."""
    return bool(_parents_text(route, namespace).strip())


def parent_refs(route: Json, namespace: Json | None) -> tuple[list[Json], list[Note]]:
    """Return the Gateways of a route as `parentRefs` of an HTTPRoute, or notes if they are invalid."""
    parents: list[Json] = []
    for text in _parents_text(route, namespace).split(","):
        parts = _PARENT.match(text.strip())
        if parts is None or (parts["listener"] and not parts["namespace"]):
            detail = f"{text.strip()!r} is not NAME, NAMESPACE/NAME or NAMESPACE/NAME/LISTENER of a Gateway"
            return [], [_not_understood(PARENT_REFS, detail)]
        optional = {"namespace": parts["namespace"], "sectionName": parts["listener"]}
        parent = {"group": _GATEWAY_GROUP, "kind": "Gateway", "name": parts["name"]}
        parents.append(parent | {name: text for name, text in optional.items() if text})
    return parents, [_not_understood(PARENT_REFS, detail) for detail in _parent_faults(parents)]


def priority(route: Json) -> tuple[int | None, list[Note]]:
    """Return the priority of a route's requests, or a note if it is invalid."""
    text = _annotation(route, REQUEST_PRIORITY)
    if text is None:
        return None, []
    if not _PRIORITY.match(text) or int(text) not in _PRIORITIES:
        return None, [_not_understood(REQUEST_PRIORITY, f"{text[:40]!r} is no whole number of 32 bits")]
    return int(text), []


def picker_reference(server: Json) -> tuple[Json, list[Note]]:
    """Return the endpoint picker of a ModelServer's pool, or a note if the annotation is invalid."""
    usual = f"{server['metadata']['name']}-epp"
    text = _annotation(server, ENDPOINT_PICKER)
    parts = _PICKER.match(usual if text is None else text)
    if parts is None or int(parts["port"] or 1) > _HIGHEST_PORT:
        problem = f"{(text or usual)[:40]!r} is not NAME or NAME:PORT of a Service: name the endpoint picker"
        return {}, [_not_understood(ENDPOINT_PICKER, problem)]
    # While the picker does not respond, requests go to any pod of the pool.
    port = {"number": int(parts["port"] or DEFAULT_PICKER_PORT)}
    return {"name": parts["name"], "port": port, "failureMode": "FailOpen"}, []


def _parents_text(route: Json, namespace: Json | None) -> str:
    own = _annotation(route, PARENT_REFS)
    return own if own is not None else _annotation(namespace or {}, PARENT_REFS) or ""


def _parent_faults(parents: list[Json]) -> Iterator[str]:
    """Yield the errors of a list of parents."""
    if len(parents) > _MOST_PARENTS:
        yield f"{len(parents)} Gateways: at most {_MOST_PARENTS} are allowed"
    listeners: dict[tuple[str, str], list[str]] = {}
    for parent in parents:
        key = parent.get("namespace", ""), parent["name"]
        listeners.setdefault(key, []).append(parent.get("sectionName", ""))
    for (_, name), sections in listeners.items():
        if len(set(sections)) < len(sections) or (len(sections) > 1 and "" in sections):
            yield f"Gateway {name!r} is named more than once: name another listener each time"


def _annotation(value: Json, name: str) -> str | None:
    text = ((value.get("metadata") or {}).get("annotations") or {}).get(name)
    return None if text is None else str(text)


def _not_understood(name: str, detail: str) -> Note:
    return Note(path=f"metadata.annotations[{name}]", text=detail, prevents=True)


HTTP_ROUTES: Final = "httproutes.gateway.networking.k8s.io"
POOLS: Final = "inferencepools.inference.networking.k8s.io"
OBJECTIVES: Final = "inferenceobjectives.inference.networking.x-k8s.io"
REWRITES: Final = "inferencemodelrewrites.inference.networking.x-k8s.io"

API_VERSIONS: Final = {
    HTTP_ROUTES: "gateway.networking.k8s.io/v1",
    POOLS: "inference.networking.k8s.io/v1",
    OBJECTIVES: "inference.networking.x-k8s.io/v1alpha2",
    REWRITES: "inference.networking.x-k8s.io/v1alpha2",
}
"""The API version to use of each kind, by the name of its definition."""

OPTIONAL_FIELDS: Final = ("name", "timeouts", "retry")
"""Fields of a rule that only newer releases or other channels of the Gateway API have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InstalledDefinitions:
    """The definitions that a cluster serves; by default all of them."""

    definitions: frozenset[str] = frozenset(API_VERSIONS)
    rule_fields: frozenset[str] = frozenset(OPTIONAL_FIELDS)
    """The optional fields that a rule of an HTTPRoute has."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Missing definitions that every translation needs."""
        return tuple(name for name in (HTTP_ROUTES, POOLS) if name not in self.definitions)


def reduce_definition(definition: Json) -> Json:
    """Return a reduced CustomResourceDefinition, since its schema may be half a megabyte."""
    metadata, spec = definition["metadata"], definition["spec"]
    served = [item for item in spec["versions"] if item["served"]]
    return {
        "metadata": {name: metadata[name] for name in ("name", "uid", "resourceVersion")},
        "served": [f"{spec['group']}/{version['name']}" for version in served],
        "ruleFields": [*_rule_fields(served)] if metadata["name"] == HTTP_ROUTES else [],
    }


def installed_of(definitions: Iterable[Json]) -> InstalledDefinitions:
    """Return what a cluster serves, from its reduced definitions."""
    served = {
        item["metadata"]["name"]: item
        for item in definitions
        if API_VERSIONS.get(item["metadata"]["name"]) in item["served"]
    }
    fields = served[HTTP_ROUTES]["ruleFields"] if HTTP_ROUTES in served else []
    return InstalledDefinitions(definitions=frozenset(served), rule_fields=frozenset(fields))


def _rule_fields(versions: Iterable[Json]) -> Iterable[str]:
    for version in versions:
        if version["name"] == "v1":
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            known = spec["properties"]["rules"]["items"]["properties"]
            yield from (name for name in OPTIONAL_FIELDS if name in known)
