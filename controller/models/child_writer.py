"""Creation, update and deletion of owned objects, without taking over objects of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.errors import (
    ClusterError,
    Conflict,
    Invalid,
    NotFound,
    NotLeading,
    Throttled,
    Unavailable,
)
from apiserver.cluster.resource import Resource
from apiserver.cluster.status_writer import StatusWriter
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.expansion.steps import (
    WORKLOADS,
    ChildKey,
    Steps,
    acts_on,
    digest_object,
    fingerprint,
    key_group,
    key_of,
)

_NO_VERSION: Final = "1"
"""A resource version that no object has, so that an apply either creates the object or is a conflict."""

_log = EventLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteState:
    """The state after the steps, according to the API server's responses."""

    children: Mapping[ChildKey, Json]
    is_over: bool
    """Whether no retry is needed."""

    refused: str
    """The first rejection by the API server, as a message."""


class ChildWriter:
    """Applies and deletes objects while this process leads."""

    def __init__(self, writer: StatusWriter, resources: Collection[Resource]) -> None:
        """Create a writer of some resources."""
        self._writer = writer
        self._resources = {(resource.kind, key_group(resource.group)): resource for resource in resources}

    async def complete(
        self, children: Mapping[ChildKey, Json], namespace: str, requested: Collection[ChildKey]
    ) -> Mapping[ChildKey, Json]:
        """Return the cached objects, and those of the names in `requested` that only the API server has.

        Caches lack objects of others, very recent objects, and objects whose label was removed. Raises
        ClusterError if the API server is unreachable.
        """
        existing = dict(children)
        for key in sorted(set(requested) - children.keys()):
            try:
                live = await self._writer.cluster.get(self._resource(key), key.name, namespace=namespace)
                existing[key] = digest_object(live)
            except ClusterError as error:
                if _is_unreachable(error):
                    raise
                # If the object exists but is unreadable, the apply fails, without taking anything over.
        return existing

    async def act(
        self, steps: Steps, children: Mapping[ChildKey, Json], applied: MutableMapping[ChildKey, str]
    ) -> WriteState:
        """Take steps; `applied` keeps the fingerprints of the applied objects.

        Raises ClusterError if the API server is unreachable, and NotLeading.
        """
        existing, refused, is_over = dict(children), "", True
        unmade: list[Json] = []
        for item in steps.apply:
            child = key_of(item)
            if acts_on(item, unmade):
                continue  # its workload may belong to someone else
            try:
                live = await self._apply(item, children.get(child))
            except ClusterError as error:
                if _is_unreachable(error):
                    raise
                is_over = False
                if item["kind"] in WORKLOADS and child not in children:
                    unmade.append(item)
                if _is_stale(error):
                    _log.info(
                        "changed in the meantime", child=f"{child.kind}/{child.name}", error=error.message
                    )
                else:
                    refused = refused or f"{child.kind} {child.name}: {_why(error, item)}"
                continue
            existing[child] = live
            applied[child] = fingerprint(item, live)
        for item in steps.delete:
            try:
                await self._delete(item)
            except ClusterError as error:
                if _is_unreachable(error):
                    raise
                is_over = False
                refused = refused or f"{item['kind']} {item['metadata']['name']}: {error.message}"
                continue
            existing.pop(key_of(item), None)
            applied.pop(key_of(item), None)
        return WriteState(children=existing, is_over=is_over, refused=refused)

    async def _apply(self, item: Json, live: Json | None) -> Json:
        """Apply an object to the version that was read, or create it; never change a new namesake."""
        precondition = {"uid": live["metadata"]["uid"]} if live else {"resourceVersion": _NO_VERSION}
        body = {**item, "metadata": {**item["metadata"], **precondition}}
        answer = await self._writer.cluster.apply(
            self._resource(key_of(item)), body, field_manager=self._writer.field_manager, force=True
        )
        return digest_object(answer)

    def _resource(self, key: ChildKey) -> Resource:
        return self._resources[key.kind, key.group]

    async def _delete(self, item: Json) -> None:
        metadata = item["metadata"]
        _log.info("deleting", child=f"{item['kind']}/{metadata['name']}", namespace=metadata["namespace"])
        try:
            await self._writer.cluster.delete(
                self._resource(key_of(item)),
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                propagation_policy="Background",
            )
        except NotFound:
            return


def _why(error: ClusterError, item: Json) -> str:
    """Return why an object was not applied, and that it is retried if the Model need not be changed.

    The error for a kind that is not served has no Status, only a page of text.
    """
    if isinstance(error, NotFound) and not error.reason:
        return f"{item['apiVersion']} is not served by this cluster: install the definition of {item['kind']}"
    if isinstance(error, Unavailable):
        return f"{error.message}; the server failed, the write is retried"
    return error.message


def _is_unreachable(error: ClusterError) -> bool:
    """Tell whether the API server is unreachable, as opposed to unable to process this object.

    The failure of a webhook, for example, is a server error that concerns only one object.
    """
    is_silent = isinstance(error, Unavailable) and error.status is None
    return is_silent or isinstance(error, (NotLeading, Throttled))


def _is_stale(error: ClusterError) -> bool:
    """Tell whether the object changed since it was read.

    If it has another uid, the API server reports a changed immutable field. Source:
    `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`.
    """
    causes = ((error.status or {}).get("details") or {}).get("causes") or []
    return isinstance(error, Conflict) or (
        isinstance(error, Invalid) and any(cause.get("field") == "metadata.uid" for cause in causes)
    )
