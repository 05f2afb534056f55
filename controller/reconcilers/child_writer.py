"""Makes and deletes what an object becomes, and takes nothing over that somebody else made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final

import structlog

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
from apiserver.schema.json import Json
from controller.models.applied import fingerprint
from controller.models.standing import WORKLOADS, ChildKey, Steps, acts_on, key_of
from controller.reconcilers.status_writer import StatusWriter

_NO_VERSION: Final = "1"
"""A version that no object has: the store counts from there. To apply it creates, or is a conflict."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acted:
    """How things stand after the steps, as far as the answers say."""

    children: Mapping[ChildKey, Json]
    is_over: bool
    """Whether nothing has to be tried again."""

    refused: str
    """What the API server refused first, in its words."""


class ChildWriter:
    """Takes steps while this process leads."""

    def __init__(self, writer: StatusWriter, resources: Mapping[str, Resource]) -> None:
        """`resources` is by kind."""
        self._writer = writer
        self._resources = resources

    async def completed(
        self, children: Mapping[ChildKey, Json], namespace: str, asked: Collection[ChildKey]
    ) -> Mapping[ChildKey, Json]:
        """Return what there is, and in the server what local copies do not have of the names asked for.

        They lack what somebody else made, what they have not heard of yet, and what somebody took a label
        from. Raises the ClusterError of a server that cannot be reached.
        """
        found = dict(children)
        for key in sorted(set(asked) - children.keys()):
            try:
                found[key] = await self._writer.cluster.get(
                    self._resources[key.kind], key.name, namespace=namespace
                )
            except ClusterError as error:
                if _is_unreachable(error):
                    raise
                # Where it is not just absent, applying will tell, and take nothing over.
        return found

    async def act(
        self, steps: Steps, children: Mapping[ChildKey, Json], applied: MutableMapping[ChildKey, str]
    ) -> Acted:
        """Take steps; `applied` keeps the fingerprints of what was.

        Raises the ClusterError of a server that cannot be reached, and NotLeading.
        """
        found, refused, is_over = dict(children), "", True
        unmade: list[Json] = []
        for item in steps.apply:
            child = key_of(item)
            if acts_on(item, unmade):
                continue  # somebody else may have made the workload meanwhile
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
            found[child] = live
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
            found.pop(key_of(item), None)
            applied.pop(key_of(item), None)
        return Acted(children=found, is_over=is_over, refused=refused)

    async def _apply(self, item: Json, live: Json | None) -> Json:
        """Apply an object to the one that was looked at, or create it: never to another one of its name."""
        known = {"uid": live["metadata"]["uid"]} if live else {"resourceVersion": _NO_VERSION}
        body = {**item, "metadata": {**item["metadata"], **known}}
        return await self._writer.cluster.apply(
            self._resources[item["kind"]], body, field_manager=self._writer.field_manager, force=True
        )

    async def _delete(self, item: Json) -> None:
        metadata = item["metadata"]
        _log.info("deleting", child=f"{item['kind']}/{metadata['name']}", namespace=metadata["namespace"])
        try:
            await self._writer.cluster.delete(
                self._resources[item["kind"]],
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                propagation_policy="Background",
            )
        except NotFound:
            return


def _why(error: ClusterError, item: Json) -> str:
    """Return why an object was not applied, and what becomes of it where nobody has to change the Model.

    A kind that nobody serves has no status, but a page of text.
    """
    if isinstance(error, NotFound) and not error.reason:
        return f"{item['apiVersion']} is not served by this cluster: install the definition of {item['kind']}"
    if isinstance(error, Unavailable):
        return f"{error.message}; the server failed, the write is retried"
    return error.message


def _is_unreachable(error: ClusterError) -> bool:
    """Tell whether nothing can be asked of the server, rather than that it cannot do this.

    A webhook that fails, for example, is an error of the server about one object only.
    """
    is_silent = isinstance(error, Unavailable) and error.status is None
    return is_silent or isinstance(error, (NotLeading, Throttled))


def _is_stale(error: ClusterError) -> bool:
    """Tell whether there is another object than the one that was looked at.

    Where that has another uid, the server finds the field changed. Source:
    `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`.
    """
    causes = ((error.status or {}).get("details") or {}).get("causes") or []
    return isinstance(error, Conflict) or (
        isinstance(error, Invalid) and any(cause.get("field") == "metadata.uid" for cause in causes)
    )
