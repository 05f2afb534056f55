"""Which parts of the Gateway API and of the Inference Extension a cluster has."""

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
"""The version that is written of each, by the name of the definition."""

OPTIONAL_FIELDS: Final = ("name", "timeouts", "retry")
"""Fields of a rule that younger releases or channels of the Gateway API have, and others not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """What is served in a cluster; by default everything."""

    definitions: frozenset[str] = frozenset(API_VERSIONS)
    rule_fields: frozenset[str] = frozenset(OPTIONAL_FIELDS)
    """Which of the optional fields a rule of an HTTPRoute has."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Definitions without which nothing can be translated."""
        return tuple(name for name in (HTTP_ROUTES, POOLS) if name not in self.definitions)


def installed_of(definitions: Iterable[Json]) -> Installed:
    """Return what is served by the CustomResourceDefinitions of a cluster."""
    served: dict[str, Json] = {}
    for definition in definitions:
        name, spec = definition["metadata"]["name"], definition["spec"]
        for version in spec["versions"]:
            if version["served"] and API_VERSIONS.get(name) == f"{spec['group']}/{version['name']}":
                served[name] = version
    return Installed(definitions=frozenset(served), rule_fields=_rule_fields(served.get(HTTP_ROUTES)))


def _rule_fields(version: Json | None) -> frozenset[str]:
    if version is None:
        return frozenset()
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    known = spec["properties"]["rules"]["items"]["properties"]
    return frozenset(name for name in OPTIONAL_FIELDS if name in known)
