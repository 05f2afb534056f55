"""Annotated autoscalers, and a stand-in for the API server that stores records of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, NotFound
from apiserver.cluster.resource import CONFIG_MAPS, Resource
from apiserver.kinds.autoscalers import KEDA_LABEL
from apiserver.schema.json import Json
from support.gathering import placed
from support.manifests import autoscaler

TERMS = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "meta/llama-3.1-8b"}


def hpa(name: str, target: str = "", *, terms: dict[str, str] | None = None, **metadata: object) -> Json:
    """Return a stored annotated HorizontalPodAutoscaler with the uid of its name."""
    value = autoscaler(name)
    value["spec"]["scaleTargetRef"]["name"] = target or name
    return placed(value, uid=name, annotations=TERMS | (terms or {}), **metadata)


def scaled_object(name: str, target: str, *, terms: dict[str, str] | None = None, **spec: object) -> Json:
    """Return a stored annotated ScaledObject."""
    manifest: Json = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"name": target}, "triggers": [{"type": "external"}], **spec},
    }
    return placed(manifest, uid=f"so-{name}", annotations=TERMS | (terms or {}))


def made_by_keda(name: str, target: str) -> Json:
    """Return the HorizontalPodAutoscaler that KEDA creates for a ScaledObject, with its annotations."""
    return hpa(f"keda-hpa-{name}", target, labels={KEDA_LABEL: name})


class Objects:
    """Answers for some objects of one namespace, by kind and name."""

    def __init__(self, *objects: Json) -> None:
        self._objects: Mapping[tuple[str, str], Json] = {
            (item["kind"], item["metadata"]["name"]): item for item in objects
        }

    @property
    def cluster(self) -> Cluster:
        """The objects as a client sees them."""
        return cast("Cluster", self)

    async def get(self, resource: Resource, name: str, **_options: object) -> Json:
        """Return an object."""
        if (resource.kind, name) not in self._objects:
            raise NotFound(f"no {name}")
        return self._objects[resource.kind, name]

    async def list(self, resource: Resource, **_options: object) -> Json:
        """Return all objects of a kind."""
        return {"items": [item for (kind, _), item in self._objects.items() if kind == resource.kind]}


@dataclass
class RecordServer:
    """Stores ConfigMaps by namespace, as the API server does; refuses all writes with a `refusal`."""

    data: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """The written annotations by the name of the autoscaler."""

    refusal: ClusterError | None = None

    @property
    def cluster(self) -> Cluster:
        """The server as a client sees it."""
        return cast("Cluster", self)

    async def patch_merge(self, resource: Resource, name: str, change: Json, *, namespace: str) -> Json:
        """Change the records of a namespace, or annotate an autoscaler."""
        if resource is not CONFIG_MAPS:
            self._begin("annotate")
            self.annotations[name] = change["metadata"]["annotations"]["stowplan.dev/decision"]
            return {}
        self._begin("patch")
        if namespace not in self.data:
            raise NotFound("there is none")
        merged = {**self.data[namespace], **change["data"]}
        self.data[namespace] = {uid: text for uid, text in merged.items() if text is not None}
        return {}

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Create the records of a namespace."""
        self._begin("apply")
        self.data[body["metadata"]["namespace"]] = body["data"]
        return body

    async def delete(self, _resource: object, _name: str, *, namespace: str) -> Json:
        """Delete the records of a namespace."""
        self._begin("delete")
        del self.data[namespace]
        return {}

    def _begin(self, verb: str) -> None:
        self.calls.append(verb)
        if self.refusal:
            raise self.refusal
