"""Discovery documents of an API server, plain and aggregated."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.json import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiResource:
    """A resource of a group version in discovery."""

    name: str
    """The plural name, as in paths."""

    kind: str
    verbs: tuple[str, ...]
    namespaced: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiGroupVersion:
    """One version of one group, the only one of its server."""

    group: str
    version: str
    resources: tuple[ApiResource, ...]

    @property
    def group_version(self) -> str:
        """Group and version, as in `apiVersion`."""
        return f"{self.group}/{self.version}"


def api_group(api: ApiGroupVersion) -> Json:
    """Return the `APIGroup` at `/apis/GROUP`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(api)}


def api_group_list(api: ApiGroupVersion) -> Json:
    """Return the `APIGroupList` at `/apis`."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(api)]}


def api_resource_list(api: ApiGroupVersion) -> Json:
    """Return the `APIResourceList` at `/apis/GROUP/VERSION`."""
    resources = [
        {
            "name": resource.name,
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": [*resource.verbs],
        }
        for resource in api.resources
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api.group_version,
        "resources": resources,
    }


def aggregated_discovery(api: ApiGroupVersion, *, version: str) -> Json:
    """Return the `APIGroupDiscoveryList` at `/apis`, in `v2` or `v2beta1` of `apidiscovery.k8s.io`."""
    resources = [
        {
            "resource": resource.name,
            "responseKind": {"group": api.group, "version": api.version, "kind": resource.kind},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": "",
            "verbs": [*resource.verbs],
        }
        for resource in api.resources
    ]
    discovered = {"version": api.version, "resources": resources, "freshness": "Current"}
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [{"metadata": {"name": api.group}, "versions": [discovered]}],
    }


JSON_TYPE: Final = "application/json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """An encoded discovery document."""

    content_type: str
    body: bytes

    @property
    def etag(self) -> str:
        """A digest of the body, quoted as the header requires."""
        return f'"{hashlib.sha256(self.body).hexdigest().upper()}"'


def negotiate(api: ApiGroupVersion, accept: str) -> Document:
    """Return the document at `/apis` that a client prefers: the first supported one of its Accept header.

    Otherwise it is the plain list: discovery is never rejected.
    """
    for wanted in accept.split(","):
        media_type, *parameters = (part.strip() for part in wanted.split(";"))
        if media_type != JSON_TYPE:
            continue
        named = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if named.get("as") is None:
            break
        version = named.get("v", "")
        if named["as"] == "APIGroupDiscoveryList" and version in {"v2", "v2beta1"}:
            content_type = f"{JSON_TYPE};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            return Document(
                content_type=content_type,
                body=msgspec.json.encode(aggregated_discovery(api, version=version)),
            )
    return Document(content_type=JSON_TYPE, body=msgspec.json.encode(api_group_list(api)))


def _group(api: ApiGroupVersion) -> Json:
    version = {"groupVersion": api.group_version, "version": api.version}
    return {"name": api.group, "versions": [version], "preferredVersion": version}
