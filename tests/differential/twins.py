"""Twins of our kinds that no webhook handles: a CustomResourceDefinition for each version."""

from __future__ import annotations

import copy
from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.structural import crd_manifest

GROUP: Final = "twin.stowplan.dev"


def twin_name(kind: Kind, version: Version) -> str:
    """Return the kind of a twin, such as VariantAutoscalingV1alpha1."""
    return f"{version.declaration.__name__}{version.name.title()}"


def twin_path(kind: Kind, version: Version, namespace: str) -> str:
    """Return the path of the collection of a twin's objects."""
    return f"/apis/{GROUP}/{version.name}/namespaces/{namespace}/{twin_name(kind, version).lower()}s"


def twin_manifest(kind: Kind, version: Version) -> Json:
    """Return the definition of a twin: the same schema, no webhooks and no status subresource."""
    name = twin_name(kind, version)
    whole = crd_manifest(kind)["spec"]["versions"]
    own = copy.deepcopy(next(item for item in whole if item["name"] == version.name))
    served = {"name": own["name"], "served": True, "storage": True, "schema": own["schema"]}
    names = {"kind": name, "listKind": f"{name}List", "plural": f"{name.lower()}s", "singular": name.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name.lower()}s.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [served]},
    }


def as_twin(kind: Kind, version: Version, value: Json) -> Json:
    """Return an object as one of the twin's kind."""
    return value | {"apiVersion": f"{GROUP}/{version.name}", "kind": twin_name(kind, version)}
