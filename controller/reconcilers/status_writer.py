"""Writes statuses by server-side apply where they say something new, and tells of conditions that changed.

Others may have conditions of their own in the same list: they stay, and do not count as news. Definitions of
others may lack members of a status: these are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
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

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusWriter:
    """What statuses are written with."""

    cluster: Cluster
    events: EventRecorder
    field_manager: str
    undeclared: dict[Resource, frozenset[str]] = field(default_factory=dict)
    """Members of statuses that the installed definitions have been found not to have."""

    async def write(
        self, resource: Resource, value: Json, new: Json, *, own: Collection[str], warns: tuple[str, str]
    ) -> None:
        """Write a status whose conditions are of the types `own`, unless it says what the old one does.

        `warns` tells which conditions are warnings: their type, empty for any, and their status. Raises the
        ClusterError of what is refused.
        """
        old = value.get("status") or {}
        unknown = self.undeclared.get(resource, frozenset())
        new = without(new, unknown)
        if not new or is_said(old, new, own):
            return
        metadata = value["metadata"]
        body = {"metadata": {name: metadata[name] for name in ("namespace", "name", "uid")}, "status": new}
        try:
            await self.cluster.apply(
                resource, body, field_manager=self.field_manager, force=True, subresource="status"
            )
        except (NotFound, Conflict):
            return  # it is gone, or another one of its name is there
        except Unavailable as error:
            found = frozenset(_UNDECLARED.findall(error.message)) - unknown
            if not found:
                raise
            _log.warning(
                "the installed definition has not all of the status",
                kind=resource.kind,
                without=sorted(found),
            )
            self.undeclared[resource] = unknown | found
            await self.write(resource, value, new, own=own, warns=warns)
            return
        self._announce(value, old, new, warns)

    def _announce(self, value: Json, old: Json, new: Json, warns: tuple[str, str]) -> None:
        before, told = _conditions(old), set()
        for kind, item in _conditions(new).items():
            known = before.get(kind) or {}
            if item["reason"] in told or all(known.get(name) == item[name] for name in ("status", "reason")):
                continue
            told.add(item["reason"])
            is_bad = item["status"] == warns[1] and warns[0] in ("", kind)
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
