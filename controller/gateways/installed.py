"""The installed parts of the Gateway API and of the Inference Extension."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json

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
class Installed:
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


def installed_of(definitions: Iterable[Json]) -> Installed:
    """Return what a cluster serves, from its reduced definitions."""
    served = {
        item["metadata"]["name"]: item
        for item in definitions
        if API_VERSIONS.get(item["metadata"]["name"]) in item["served"]
    }
    fields = served[HTTP_ROUTES]["ruleFields"] if HTTP_ROUTES in served else []
    return Installed(definitions=frozenset(served), rule_fields=frozenset(fields))


def _rule_fields(versions: Iterable[Json]) -> Iterable[str]:
    for version in versions:
        if version["name"] == "v1":
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            known = spec["properties"]["rules"]["items"]["properties"]
            yield from (name for name in OPTIONAL_FIELDS if name in known)
