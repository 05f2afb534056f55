"""Discovery documents of `external.metrics.k8s.io/v1beta1`, plain and aggregated."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.json import Json

GROUP: Final = "external.metrics.k8s.io"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
JSON_TYPE: Final = "application/json"

# One entry for all metrics: a list of thousands would slow down every kubectl of the cluster.
_NAME: Final = "externalmetrics"
_KIND: Final = "ExternalMetricValueList"
_VERBS: Final = ["get"]

_VERSION: Final = {"groupVersion": API_VERSION, "version": VERSION}
_GROUP: Final[Json] = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}

API_GROUP: Final = {"kind": "APIGroup", "apiVersion": "v1", **_GROUP}
"""The document at `/apis/GROUP`."""

API_GROUP_LIST: Final = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]}
"""The document at `/apis`."""

API_RESOURCE_LIST: Final[Json] = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": API_VERSION,
    "resources": [
        {"name": _NAME, "singularName": "", "namespaced": True, "kind": _KIND, "verbs": _VERBS},
    ],
}
"""The document at `/apis/GROUP/VERSION`."""


def aggregated_discovery(version: str) -> Json:
    """Return the `APIGroupDiscoveryList` at `/apis`, in `v2` or `v2beta1` of `apidiscovery.k8s.io`."""
    resource = {
        "resource": _NAME,
        "responseKind": {"group": GROUP, "version": VERSION, "kind": _KIND},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": _VERBS,
    }
    discovered = {"version": VERSION, "resources": [resource], "freshness": "Current"}
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [{"metadata": {"name": GROUP}, "versions": [discovered]}],
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """An encoded discovery document."""

    content_type: str
    body: bytes

    @property
    def etag(self) -> str:
        """A digest of the body, quoted as the header requires."""
        return f'"{hashlib.sha256(self.body).hexdigest().upper()}"'


def negotiate(accept: str) -> Document:
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
            body = msgspec.json.encode(aggregated_discovery(version))
            return Document(content_type=content_type, body=body)
    return Document(content_type=JSON_TYPE, body=msgspec.json.encode(API_GROUP_LIST))
