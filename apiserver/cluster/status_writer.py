"""Server-side apply of changed statuses, with events for changed conditions.

Other controllers may have conditions in the same list: they are kept, and their changes are ignored.
Definitions installed by other projects may lack status fields: these are left out. If the cache lacks the
last write, the written status is used instead, so that nothing is written or announced twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound, Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import Resource
from apiserver.log import EventLogger
from apiserver.schema.json import Json, same, without

_UNDECLARED: Final = re.compile(r"\.status\.(\w+)[^:\n]*: field not declared in schema")
"""Matches the API server's error for an undeclared field, which comes without a specific code.

Source: `k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go`.
"""

REMEMBERED: Final = 4096
"""The number of statuses kept until the cache has them; the oldest is dropped first."""

_log = EventLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusWriter:
    """Writes statuses with one field manager."""

    cluster: Cluster
    events: EventRecorder
    field_manager: str
    undeclared: dict[Resource, frozenset[str]] = field(default_factory=dict)
    """Status fields that the installed definitions were found to lack."""

    written: dict[str, tuple[str, Json]] = field(default_factory=dict)
    """By uid: the resource version of the cached object that a status was written for, and that status."""

    def latest(self, value: Json) -> Json:
        """Return a cached object with the status that was written since, if any."""
        metadata = value["metadata"]
        version, status = self.written.get(metadata["uid"], ("", {}))
        if version and version == metadata.get("resourceVersion"):
            return {**value, "status": status}
        self.written.pop(metadata["uid"], None)
        return value

    async def write(self, resource: Resource, value: Json, new: Json, *, own: Mapping[str, str]) -> None:
        """Write a status of a `latest` object, unless it equals the old one.

        `own` maps each of our condition types to the status that is a warning, or to an empty string. Raises
        ClusterError if the write is rejected.
        """
        old = value.get("status") or {}
        unknown = self.undeclared.get(resource, frozenset())
        new = without(new, unknown)
        if not new or is_said(old, new, own):
            return
        try:
            answer = await apply_status(self.cluster, resource, value, new, field_manager=self.field_manager)
        except Unavailable as error:
            undeclared = frozenset(_UNDECLARED.findall(error.message)) - unknown
            if not undeclared:
                raise
            _log.warning(
                "the installed definition lacks fields of the status",
                kind=resource.kind,
                without=sorted(undeclared),
            )
            self.undeclared[resource] = unknown | undeclared
            await self.write(resource, value, new, own=own)
            return
        if answer is None:
            return
        self._remember(value, answer.get("status") or {})
        self._announce(value, old, new, own)

    def announce(self, value: Json, new: Json, *, own: Mapping[str, str]) -> None:
        """Record events for a status of a `latest` object whose definition has no fields for it.

        The status is kept in memory. See `write` for `own`.
        """
        old = value.get("status") or {}
        if not is_said(old, new, own):
            self._remember(value, new)
            self._announce(value, old, new, own)

    def _remember(self, value: Json, status: Json) -> None:
        metadata = value["metadata"]
        if version := metadata.get("resourceVersion"):
            self.written[metadata["uid"]] = version, status
            if len(self.written) > REMEMBERED:  # the cache never reports deleted objects
                del self.written[next(iter(self.written))]

    def _announce(self, value: Json, old: Json, new: Json, own: Mapping[str, str]) -> None:
        """Record events for changed conditions, but not for new ones that are good."""
        before, announced = _conditions(old), set()
        for kind, item in _conditions(new).items():
            is_bad = item["status"] == own[kind]
            if kind in before:
                is_news = any(before[kind].get(name) != item[name] for name in ("status", "reason"))
            else:
                is_news = is_bad or (not own[kind] and item["status"] == "True")
            if item["reason"] in announced or not is_news:
                continue
            announced.add(item["reason"])
            self.events.record(
                value,
                type="Warning" if is_bad else "Normal",
                reason=item["reason"],
                action="Reconcile",
                note=item["message"],
                meaning=item["reason"],
            )


async def apply_status(
    cluster: Cluster, resource: Resource, value: Json, status: Json, *, field_manager: str
) -> Json | None:
    """Write the status of an object; return the stored object, or None if it was deleted or replaced.

    Raises ClusterError if the write is rejected.
    """
    # With a uid, an apply never creates an object.
    metadata = {name: value["metadata"][name] for name in ("namespace", "name", "uid")}
    body = {"metadata": metadata, "status": status}
    try:
        return await cluster.apply(
            resource, body, field_manager=field_manager, force=True, subresource="status"
        )
    except (NotFound, Conflict):
        return None


def is_said(old: Json, new: Json, own: Collection[str]) -> bool:
    """Tell whether a status contains a new one, without further conditions of the types `own`."""
    members = all(same(old.get(name), item) for name, item in new.items() if name != "conditions")
    known = {kind: item for kind, item in _conditions(old).items() if kind in own}
    return members and same(known, _conditions(new))


def _conditions(status: Json) -> dict[str, Json]:
    return {str(item.get("type")): item for item in status.get("conditions") or []}
