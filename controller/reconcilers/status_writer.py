"""Writes statuses by server-side apply where they say something new, and tells of conditions that changed.

Others may have conditions of their own in the same list: they stay, and do not count as news. Definitions of
others may lack members of a status: these are left out. A local copy that does not have the last write yet is
completed with it, so that nothing is written or told twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound, Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import Resource
from apiserver.schema.json import Json
from apiserver.schema.undecoded import same, without

_UNDECLARED: Final = re.compile(r"\.status\.(\w+)[^:\n]*: field not declared in schema")
"""How the API server refuses to apply a member, with the code of an error of its own.

Source: `k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go`.
"""

REMEMBERED: Final = 4096
"""Statuses that are kept until local copies have them; the oldest goes first."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusWriter:
    """What statuses are written with."""

    cluster: Cluster
    events: EventRecorder
    field_manager: str
    undeclared: dict[Resource, frozenset[str]] = field(default_factory=dict)
    """Members of statuses that the installed definitions have been found not to have."""

    written: dict[str, tuple[str, Json]] = field(default_factory=dict)
    """By uid: the version of the copy that a status was written after, and that status."""

    def latest(self, value: Json) -> Json:
        """Return an object of a local copy with the status that was written since, if there is one."""
        metadata = value["metadata"]
        version, status = self.written.get(metadata["uid"], ("", {}))
        if version and version == metadata.get("resourceVersion"):
            return {**value, "status": status}
        self.written.pop(metadata["uid"], None)
        return value

    async def write(self, resource: Resource, value: Json, new: Json, *, own: Mapping[str, str]) -> None:
        """Write a status of a `latest` object, unless it says what the old one does.

        `own` has the types of its conditions, and which status of each is a warning, empty for none. Raises
        the ClusterError of what is refused.
        """
        old = value.get("status") or {}
        unknown = self.undeclared.get(resource, frozenset())
        new = without(new, unknown)
        if not new or is_said(old, new, own):
            return
        metadata = value["metadata"]
        body = {"metadata": {name: metadata[name] for name in ("namespace", "name", "uid")}, "status": new}
        try:
            answer = await self.cluster.apply(
                resource, body, field_manager=self.field_manager, force=True, subresource="status"
            )
        except (NotFound, Conflict):
            return  # it is gone, or another one of its name is there
        except Unavailable as error:
            found = frozenset(_UNDECLARED.findall(error.message)) - unknown
            if not found:
                raise
            _log.warning(
                "the installed definition lacks fields of the status",
                kind=resource.kind,
                without=sorted(found),
            )
            self.undeclared[resource] = unknown | found
            await self.write(resource, value, new, own=own)
            return
        if version := metadata.get("resourceVersion"):
            self.written[metadata["uid"]] = version, answer.get("status") or {}
            if len(self.written) > REMEMBERED:  # of what is gone no copy will ever tell
                del self.written[next(iter(self.written))]
        self._announce(value, old, new, own)

    def _announce(self, value: Json, old: Json, new: Json, own: Mapping[str, str]) -> None:
        """Tell of conditions that changed. That nothing is wrong with what is new is no news."""
        before, told = _conditions(old), set()
        for kind, item in _conditions(new).items():
            is_bad = item["status"] == own[kind]
            if kind in before:
                is_news = any(before[kind].get(name) != item[name] for name in ("status", "reason"))
            else:
                is_news = is_bad or (not own[kind] and item["status"] == "True")
            if item["reason"] in told or not is_news:
                continue
            told.add(item["reason"])
            self.events.record(
                value,
                type="Warning" if is_bad else "Normal",
                reason=item["reason"],
                action="Reconcile",
                note=item["message"],
                meaning=item["reason"],
            )


def is_said(old: Json, new: Json, own: Collection[str]) -> bool:
    """Tell whether a status says all that a new one does, and nothing else under the conditions `own`."""
    members = all(same(old.get(name), item) for name, item in new.items() if name != "conditions")
    known = {kind: item for kind, item in _conditions(old).items() if kind in own}
    return members and same(known, _conditions(new))


def _conditions(status: Json) -> dict[str, Json]:
    return {str(item.get("type")): item for item in status.get("conditions") or []}
