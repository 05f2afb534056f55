"""A cluster in memory: objects of one kind with the semantics of an API server, and injected failures."""

from __future__ import annotations

# ruff: noqa: ARG002 (same parameters as for a real cluster)
import copy
from typing import TYPE_CHECKING, TypeVar

from apiserver.cluster.client import PAGE_SIZE, Cluster
from apiserver.cluster.errors import ClusterError, Conflict, NotFound
from apiserver.cluster.transport import CALL_SECONDS
from apiserver.kinds.conversion import convert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apiserver.cluster.resource import Resource, Selection
    from apiserver.schema.json import Json

T = TypeVar("T")
Fault = tuple[str, str, str]
"""A verb, a version and the name of an object, empty for a list or a creation."""


class CutOffError(Exception):
    """The client was cut off; its last write has been stored."""


class MemoryCluster(Cluster):
    """Stores objects, stops after a number of writes, and fails calls for which `fault` returns an error."""

    def __init__(
        self,
        objects: Iterable[Json],
        *,
        writes_left: int = 2**30,
        fault: Callable[[Fault], ClusterError | None] = lambda _: None,
    ) -> None:
        self.objects = {item["metadata"]["name"]: copy.deepcopy(item) for item in objects}
        for item in self.objects.values():
            item["metadata"] |= {"namespace": "models", "resourceVersion": "1"}
        self.writes_left = writes_left
        self.calls: list[Fault] = []
        self._fault = fault

    def said(self) -> list[Json]:
        """Return all objects without their resource versions."""
        return [
            item | {"metadata": item["metadata"] | {"resourceVersion": ""}} for item in self.objects.values()
        ]

    async def list_kept(
        self, selection: Selection, kept: Callable[[Json], T], *, page_size: int = PAGE_SIZE
    ) -> tuple[list[T], str]:
        """Read all objects, each reduced by `kept`."""
        self._begin("list", selection.resource)
        return [kept(self._read(name, selection.resource)) for name in self.objects], "1"

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Read one object."""
        self._begin("get", resource, name)
        return self._read(name, resource)

    async def create(
        self,
        resource: Resource,
        body: Json,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Create an object by dry run, which is all that is needed."""
        self._begin("create", resource)
        assert dry_run
        return copy.deepcopy(body)

    async def replace(
        self,
        resource: Resource,
        body: Json,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        timeout_seconds: float = CALL_SECONDS,
    ) -> Json:
        """Write an object or its status, which are separate; an unchanged object is not written."""
        name = body["metadata"]["name"]
        self._begin("replace", resource, name)
        stored = self._read(name, resource)
        if body["metadata"].get("resourceVersion") not in {None, stored["metadata"]["resourceVersion"]}:
            raise Conflict("somebody wrote first")
        written = _merged(stored, copy.deepcopy(body), is_status=subresource == "status")
        if not dry_run and written != stored:
            self._store(written)
        return copy.deepcopy(written)

    def _begin(self, verb: str, resource: Resource, name: str = "") -> None:
        if not self.writes_left:
            raise CutOffError
        call = (verb, resource.version, name)
        self.calls.append(call)
        if error := self._fault(call):
            raise error

    def _read(self, name: str, resource: Resource) -> Json:
        if name not in self.objects:
            raise NotFound(f"{name} is not there")
        return convert(copy.deepcopy(self.objects[name]), resource.api_version)

    def _store(self, item: Json) -> None:
        metadata = item["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        self.objects[metadata["name"]] = copy.deepcopy(item)
        self.writes_left -= 1
        if not self.writes_left:
            raise CutOffError


def _merged(stored: Json, body: Json, *, is_status: bool) -> Json:
    taken, kept = (body, stored) if is_status else (stored, body)
    status = {"status": taken["status"]} if "status" in taken else {}
    rest = {name: item for name, item in kept.items() if name != "status"}
    version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
    return rest | {"metadata": rest["metadata"] | version} | status
