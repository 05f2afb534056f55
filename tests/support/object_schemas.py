"""JSON schemas of objects for kubeconform: of Kubernetes and of other projects, from their Go modules.

They are strict: a field that is not declared is an error, where the API server would drop it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from apiserver.schema.json import JsonValue
from hack.controlplane.foreign import Definition, definition_file, module_folders
from hack.controlplane.modules import chosen_kubernetes

LOCATION: Final = "{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"
"""Where a schema is in the directory, as a template of kubeconform; the core group is called v1."""

_FOREIGN: Final = (
    Definition.POD_MONITORS,
    Definition.PROMETHEUS_RULES,
    Definition.CERTIFICATES,
    Definition.ISSUERS,
)
_REFERENCE: Final = "#/components/schemas/"
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"


def write_schemas(folder: Path) -> None:
    """Write the schema of every kind of Kubernetes that is served, and of the kinds that the chart uses."""
    for group, version, kind, schema in (*_of_kubernetes(), *_of_other_projects()):
        path = folder / (group or "v1") / f"{kind.lower()}_{version}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(schema), encoding="utf-8")


def _of_kubernetes() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    source = module_folders(chosen_kubernetes(os.environ), ["k8s.io/kubernetes"])["k8s.io/kubernetes"]
    for path in sorted(source.glob("api/openapi-spec/v3/*__v*_openapi.json")):
        text = path.read_text(encoding="utf-8").replace(_REFERENCE, "#/definitions/")
        schemas = json.loads(text).get("components", {}).get("schemas", {})
        definitions = {name: _strict(schema) for name, schema in schemas.items()}
        for name, schema in schemas.items():
            for kind in schema.get("x-kubernetes-group-version-kind", []):
                needed = {"definitions": _closure(name, definitions), "$ref": f"#/definitions/{name}"}
                yield kind["group"], kind["version"], kind["kind"], needed


def _of_other_projects() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for definition in _FOREIGN:
        spec = yaml.load(definition_file(definition).read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            schema = _strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            yield spec["group"], version["name"], spec["names"]["kind"], schema


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that rejects undeclared members at every level that declares some."""
    strict = dict(schema)
    if "properties" in schema:
        strict["properties"] = {name: _strict(inner) for name, inner in schema["properties"].items()}
        if not schema.get(_PRESERVES):
            strict.setdefault("additionalProperties", False)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            strict[keyword] = _strict(schema[keyword])
    return strict


def _closure(name: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with all definitions that it refers to, directly or not."""
    needed: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = definitions[name]
            waiting += _references(definitions[name])
    return needed


def _references(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.removeprefix("#/definitions/")
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _references(inner)
