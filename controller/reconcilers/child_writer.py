"""Makes and deletes what an object becomes, and takes nothing over that somebody else made."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

import structlog

from apiserver.cluster.errors import ClusterError, Conflict, NotFound, NotLeading, Unavailable
from apiserver.cluster.resource import Resource
from apiserver.schema.json import Json
from controller.models.standing import ChildKey, Steps, key_of
from controller.reconcilers.status_writer import StatusWriter

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acted:
    """How things stand after the steps, as far as the answers say."""

    children: Mapping[ChildKey, Json]
    foreign: frozenset[ChildKey]
    """Objects of names that are needed, and that somebody else made."""

    refused: str
    """What the API server refused first, in its words."""


class ChildWriter:
    """Takes steps while this process leads."""

    def __init__(self, writer: StatusWriter, resources: Mapping[str, Resource]) -> None:
        """`resources` is by kind."""
        self._writer = writer
        self._resources = resources

    async def act(
        self, steps: Steps, children: Mapping[ChildKey, Json], generations: MutableMapping[ChildKey, int]
    ) -> Acted:
        """Take steps; `generations` is kept true of what was applied.

        Raises the ClusterError of a server that cannot be reached, and NotLeading.
        """
        found, foreign, refused = dict(children), set(), ""
        for item in steps.apply:
            child = key_of(item)
            try:
                if child not in found and (there := await self._there(item)):
                    if _has_owner_of(there, item):
                        found[child] = there  # a local copy lags behind: its change is an event of its own
                    else:
                        foreign.add(child)
                    continue
                live = await self._apply(item)
            except (Unavailable, NotLeading):
                raise
            except Conflict as error:
                _log.info("changed meanwhile", child=f"{child.kind}/{child.name}", error=error.message)
                continue  # the change is an event of its own
            except ClusterError as error:
                refused = refused or f"{child.kind} {child.name}: {_why(error, item)}"
                continue
            found[child] = live
            generations[child] = live["metadata"].get("generation", 0)
        for item in steps.delete:
            try:
                await self._delete(item)
            except (Unavailable, NotLeading):
                raise
            except ClusterError as error:
                refused = refused or f"{item['kind']} {item['metadata']['name']}: {error.message}"
                continue
            found.pop(key_of(item), None)
            generations.pop(key_of(item), None)
        return Acted(children=found, foreign=frozenset(foreign), refused=refused)

    async def _there(self, item: Json) -> Json | None:
        """Return the object of this name that somebody made: server-side apply would take it over."""
        metadata = item["metadata"]
        try:
            return await self._writer.cluster.get(
                self._resources[item["kind"]], metadata["name"], namespace=metadata["namespace"]
            )
        except NotFound:
            return None

    async def _apply(self, item: Json) -> Json:
        return await self._writer.cluster.apply(
            self._resources[item["kind"]], item, field_manager=self._writer.field_manager, force=True
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


def _has_owner_of(live: Json, item: Json) -> bool:
    """Tell whether an object belongs to something that another one is to belong to."""
    owners = live["metadata"].get("ownerReferences") or []
    uids = {owner["uid"] for owner in item["metadata"].get("ownerReferences") or []}
    return any(owner.get("uid") in uids for owner in owners)


def _why(error: ClusterError, item: Json) -> str:
    """Return why an object was not applied. A kind that nobody serves has no status, but a page of text."""
    if isinstance(error, NotFound) and not error.reason:
        return f"{item['apiVersion']} is not served here: install the definition of {item['kind']}"
    return error.message
