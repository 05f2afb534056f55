"""What the controller's Lease says of its work: when it last finished a cycle, and what that confirmed.

The Lease is renewed every two seconds in any case, and by another task than the one that decides: its renewal
says that the process lives, these annotations say that it decides. So a status need not be written again only
to look fresh, and a decision grows old with the cycles, of all variants at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from apiserver.cluster.timestamps import rfc3339_micro

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apiserver.schema.json import Json

LEASE_NAME = "stowplan-controller"
"""The Lease by which one of several controllers leads, in Stowplan's own namespace."""

LAST_CYCLE = "stowplan.dev/last-cycle"
"""Annotation: when the newest cycle that was finished began to publish."""

NEWEST_DECISION = "stowplan.dev/newest-decision"
"""Annotation: the newest `lastRunTime` of any status then. Who has not seen it yet has an old copy."""

UNCONFIRMED = "stowplan.dev/unconfirmed"
"""Annotation: the objects of ours, as `namespace/name`, whose status that cycle could not confirm."""

WHOLE_KIND = "*"
"""Stands there in the place of a namespace, before the name of a kind: none of it is confirmed."""

MOST_UNCONFIRMED = 100
"""A cycle that failed more of them than an annotation should hold was not finished."""

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """One finished cycle. Times are in UTC."""

    time: datetime
    newest_decision: datetime | None = None
    """None where nothing has been decided."""
    unconfirmed: frozenset[Key] = frozenset()
    """Of these nothing is said: their status may be old."""

    def annotations(self) -> dict[str, str]:
        """Return what to write on the Lease."""
        names = sorted(f"{namespace}/{name}" for namespace, name in self.unconfirmed)
        newest = self.newest_decision
        return {
            LAST_CYCLE: rfc3339_micro(self.time),
            NEWEST_DECISION: rfc3339_micro(newest) if newest else "",
            UNCONFIRMED: ",".join(names),
        }


def heartbeat_of(lease: Json) -> Heartbeat | None:
    """Return what a Lease says, or None where it says nothing that can be read."""
    annotations: Mapping[str, str] = lease["metadata"].get("annotations") or {}
    time, newest = annotations.get(LAST_CYCLE), annotations.get(NEWEST_DECISION)
    names = [name.partition("/") for name in annotations.get(UNCONFIRMED, "").split(",") if name]
    try:
        return Heartbeat(
            time=_moment(time or ""),
            newest_decision=_moment(newest) if newest else None,
            unconfirmed=frozenset((namespace, name) for namespace, _, name in names),
        )
    except (ValueError, OverflowError):
        return None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
