"""A cluster in memory with objects of every kind, as far as `stowplan uninstall` reads them."""

from __future__ import annotations

# ruff: noqa: ARG002 (same parameters as for a real cluster)
import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, NotFound
from apiserver.cluster.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    Resource,
    Selection,
)
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json, JsonValue, as_object
from support.memory_cluster import CutOffError

Key = tuple[str, str, str]
"""Plural, namespace and name."""

T = TypeVar("T")


class MemoryStore(Cluster):
    """Stores objects, and stops after a number of writes. Deletions release Leases and cascade.

    `refused` has errors with which patches of objects fail, `denied` verbs and plurals that are forbidden.
    `meanwhile` is called before each call is answered, with a verb, a plural or path, and a name or empty: it
    may do what others do at that time, or raise the error that is the answer.
    """

    def __init__(self, objects: Iterable[tuple[Resource, Json]]) -> None:
        self.objects: dict[Key, Json] = {}
        self.resources: dict[str, Resource] = {}
        self.writes_left = 2**30
        self.refused: dict[Key, ClusterError] = {}
        self.denied: set[tuple[str, str]] = set()
        self.meanwhile: Callable[[str, str, str], None] = lambda *_: None
        self._uids = itertools.count(1)
        for resource, item in objects:
            self.put(resource, item)

    def put(self, resource: Resource, item: Json) -> None:
        """Create an object, in place of one with the same name; it has a UID of its own."""
        metadata = item["metadata"]
        self.resources[resource.plural] = resource
        key = resource.plural, metadata.get("namespace", ""), metadata["name"]
        self.objects[key] = copy.deepcopy(item)
        self.objects[key]["metadata"] |= {"uid": str(next(self._uids)), "resourceVersion": "1"}

    def edit(self, key: Key, change: Json) -> None:
        """Apply a merge patch to an object as another client."""
        self._write(key, as_object(_patched(self.objects[key], change)))

    @property
    def host(self) -> str:
        """The name of the cluster in reports."""
        return "memory"

    async def list_kept(
        self, selection: Selection, kept: Callable[[Json], T], *, page_size: int = 0
    ) -> tuple[list[T], str]:
        """Return the selected objects, each reduced by `kept`."""
        resource = selection.resource
        self.meanwhile("list", resource.plural, "")
        if ("list", resource.plural) in self.denied:
            raise Forbidden(f"{resource.plural} is forbidden")
        if not self._is_served(resource):
            raise NotFound(f"{resource.plural} is not there")
        fields = dict(item.split("=") for item in (selection.field_selector or "").split(",") if item)
        return [
            kept(copy.deepcopy(item))
            for (plural, namespace, _), item in self.objects.items()
            if plural == resource.plural
            and selection.namespace in {None, namespace}
            and _has(item, selection.label_selector or "")
            and fields.get("metadata.name") in {None, item["metadata"]["name"]}
        ], "1"

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, **_: Any) -> Json:
        """Read one object."""
        self.meanwhile("get", resource.plural, name)
        return copy.deepcopy(self.objects[self._key(resource, name, namespace)])

    async def create(self, resource: Resource, body: Json, **_: Any) -> Json:
        """Answer a SelfSubjectAccessReview: everything is allowed that is not denied."""
        asked = body["spec"]["resourceAttributes"]
        return body | {"status": {"allowed": (asked["verb"], asked["resource"]) not in self.denied}}

    async def replace(self, resource: Resource, body: Json, **_: Any) -> Json:
        """Write an object; a changed spec adds an entry to managedFields."""
        written = copy.deepcopy(body)
        metadata = written["metadata"]
        self.meanwhile("replace", resource.plural, metadata["name"])
        key = self._key(resource, metadata["name"], metadata.get("namespace"))
        if written.get("spec") != self.objects[key].get("spec"):
            entries = metadata.get("managedFields") or []
            metadata["managedFields"] = [*entries, {"manager": "stowplan", "operation": "Update"}]
        return self._write(key, written)

    async def patch_merge(
        self, resource: Resource, name: str, change: Json, *, namespace: str | None = None, **_: Any
    ) -> Json:
        """Apply a merge patch to an object."""
        self.meanwhile("patch", resource.plural, name)
        key = self._key(resource, name, namespace)
        if key in self.refused:
            raise self.refused[key]
        return self._write(key, as_object(_patched(self.objects[key], change)))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        **_: Any,
    ) -> Json:
        """Delete an object and those that are deleted with it; with finalizers, it stays."""
        self.meanwhile("delete", resource.plural, name)
        key = self._key(resource, name, namespace)
        if uid not in {None, self.objects[key]["metadata"]["uid"]}:
            raise Conflict("another one has its name")
        if self.objects[key]["metadata"].get("finalizers"):
            self.edit(key, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
            return {}
        del self.objects[key]
        if resource == DEPLOYMENTS:
            self.objects.get((LEASES.plural, key[1], name), {"spec": {}})["spec"]["holderIdentity"] = ""
        gone = [
            other
            for other in self.objects
            if (resource == NAMESPACES and other[1] == name)
            or (resource == CUSTOM_RESOURCE_DEFINITIONS and other[0] == name.partition(".")[0])
        ]
        for other in gone:
            del self.objects[other]
        self._count()
        return {}

    async def get_path(self, path: str, **_: Any) -> Json:
        """Return discovery documents."""
        self.meanwhile("get", path, "")
        served = [resource for resource in self.resources.values() if self._is_served(resource)]
        if path == "/apis":
            versions = {resource.group: resource.version for resource in served if resource.group}
            groups = [
                {"name": name, "preferredVersion": {"version": version}} for name, version in versions.items()
            ]
            return {"groups": groups}
        return {
            "resources": [
                {
                    "name": resource.plural,
                    "kind": resource.kind,
                    "namespaced": resource.namespaced,
                    "verbs": ["list"],
                }
                for resource in served
                if resource.path().rpartition("/")[0] == path
            ]
        }

    def _is_served(self, resource: Resource) -> bool:
        name = f"{resource.plural}.{resource.group}"
        is_ours = any(kind.crd_name == name for kind in DEFINED)
        return not is_ours or (CUSTOM_RESOURCE_DEFINITIONS.plural, "", name) in self.objects

    def _key(self, resource: Resource, name: str, namespace: str | None) -> Key:
        key = resource.plural, namespace or "", name
        if key not in self.objects:
            raise NotFound(f"{name} is not there")
        return key

    def _write(self, key: Key, item: Json) -> Json:
        stored = self.objects[key]["metadata"]
        if item["metadata"].get("resourceVersion") not in {None, stored["resourceVersion"]}:
            raise Conflict("somebody wrote first")
        item["metadata"]["resourceVersion"] = str(int(stored["resourceVersion"]) + 1)
        self.objects[key] = item
        self._count()
        return copy.deepcopy(item)

    def _count(self) -> None:
        self.writes_left -= 1
        if not self.writes_left:
            raise CutOffError


def _has(item: Json, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    wanted = [part.split("=") for part in selector.split(",") if "=" in part]
    return all(labels.get(name) == value for name, value in wanted)


def _patched(value: JsonValue, change: JsonValue) -> JsonValue:
    """Return the result of a merge patch. Source: RFC 7386."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    made = copy.deepcopy(value) if isinstance(value, dict) else {}
    for name, item in change.items():
        if item is None:
            made.pop(name, None)
        else:
            made[name] = _patched(made.get(name), item)
    return made
