"""The controller's heartbeat: annotations on its Lease about the last finished cycle.

The Lease is renewed every two seconds in any case, by a task other than the one that decides: the renewal
shows that the process is alive, the annotations show that it decides. A status therefore need not be
rewritten only to look fresh, and the decisions of all variants age together with the cycles.

The API and the controller must agree on which decisions in statuses the metrics API serves: the heartbeat
names the newest one, which every reader must have received. Readers would wait forever for one that they do
not serve.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeGuard

from apiserver.cluster.timing import moment_of, rfc3339_micro
from apiserver.schema.json import Json, JsonValue, as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping


LEASE_NAME = "stowplan-controller"
"""The name of the Lease for leader election among controllers, in Stowplan's own namespace."""

LAST_CYCLE = "stowplan.dev/last-cycle"
"""Annotation: the time at which the last finished cycle began to publish."""

NEWEST_DECISION = "stowplan.dev/newest-decision"
"""Annotation: the latest `lastRunTime` of any status at that time. A reader that has not seen it has an
outdated cache."""

UNCONFIRMED = "stowplan.dev/unconfirmed"
"""Annotation: our objects, as `namespace/name`, whose status that cycle could not confirm. `*/KIND` stands
for all objects of a kind, and `namespace/*` for all objects in a namespace."""

MOST_UNCONFIRMED = 100
"""The maximum number of entries for one kind. If there are more objects, their namespaces are written. A
cycle that would need more namespaces counts as unfinished."""

_ALL = "*"

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """A finished cycle. Times are in UTC."""

    time: datetime
    newest_decision: datetime | None = None
    """None if nothing has been decided."""
    unconfirmed: frozenset[Key] = frozenset()
    """Objects whose status was not confirmed and may be outdated, or placeholders for several."""

    def confirms(self, kind: str, key: Key) -> bool:
        """Tell whether the cycle confirmed the status of an object."""
        namespace, _ = key
        return self.unconfirmed.isdisjoint({key, whole_kind(kind), (namespace, _ALL)})

    def annotations(self) -> dict[str, str]:
        """Return the annotations to write to the Lease."""
        names = sorted(f"{namespace}/{name}" for namespace, name in self.unconfirmed)
        newest = self.newest_decision
        return {
            LAST_CYCLE: rfc3339_micro(self.time),
            NEWEST_DECISION: rfc3339_micro(newest) if newest else "",
            UNCONFIRMED: ",".join(names),
        }


def whole_kind(kind: str) -> Key:
    """Return the placeholder for all objects of a kind."""
    return _ALL, kind


def annotation_entries(unconfirmed: frozenset[Key]) -> frozenset[Key] | None:
    """Return objects of a kind as entries of the annotation, or None if they are in too many namespaces."""
    if len(unconfirmed) <= MOST_UNCONFIRMED:
        return unconfirmed
    namespaces = frozenset((namespace, _ALL) for namespace, _ in unconfirmed)
    return namespaces if len(namespaces) <= MOST_UNCONFIRMED else None


def heartbeat_of(lease: Json) -> Heartbeat | None:
    """Return the heartbeat of a Lease, or None if it is missing or invalid."""
    annotations: Mapping[str, str] = lease["metadata"].get("annotations") or {}
    time, newest = moment_of(annotations.get(LAST_CYCLE)), annotations.get(NEWEST_DECISION)
    newest_decision = moment_of(newest)
    if time is None or (newest and newest_decision is None):
        return None
    names = [name.partition("/") for name in annotations.get(UNCONFIRMED, "").split(",") if name]
    unconfirmed = frozenset((namespace, name) for namespace, _, name in names)
    return Heartbeat(time=time, newest_decision=newest_decision, unconfirmed=unconfirmed)


class NotServedError(Exception):
    """The status does not contain the number; the message says why."""


def desired_replicas(status: Json) -> int:
    """Return the decision in the status of a VariantAutoscaling. Raises NotServedError."""
    if "decision" in status and as_object(status.get("actuation")).get("applied") is False:
        # A number beside it is of an earlier controller, which writes no `decision`.
        raise NotServedError(
            "its decision is only advice, or it cannot be planned: see its conditions or events"
        )
    return replicas_in(status, "desiredOptimizedAlloc", absent="it has no decision yet")


def replicas_in(status: Json, allocation: str, *, absent: str) -> int:
    """Return the replicas of an allocation. Raises NotServedError, which begins with `absent`."""
    replicas = as_object(status.get(allocation)).get("numReplicas")
    if not _is_count(replicas):
        raise NotServedError(f"{absent} (no status.{allocation}.numReplicas)")
    return replicas


def decision_time(status: Json) -> datetime:
    """Return when the status of a VariantAutoscaling was decided, in UTC. Raises NotServedError."""
    time = moment_of(as_object(status.get("desiredOptimizedAlloc")).get("lastRunTime"))
    if time is None:
        raise NotServedError(
            "the time of its decision is unknown (no status.desiredOptimizedAlloc.lastRunTime)"
        )
    return time


def served_time(status: Json) -> datetime | None:
    """Return when a served decision of a VariantAutoscaling was made; None for any other status."""
    try:
        desired_replicas(status)
        return decision_time(status)
    except NotServedError:
        return None


def bound_replicas(target: Json) -> int | None:
    """Return the decision for a target in the status of a binding; None if there is none, or only advice."""
    replicas = target.get("replicas")
    return replicas if _is_count(replicas) else None


def bound_served_time(status: Json) -> datetime | None:
    """Return when a served decision of a binding was made; None for any other status."""
    targets = [item for item in as_list(status.get("targets")) if isinstance(item, dict)]
    is_decided = any(bound_replicas(target) is not None for target in targets)
    return moment_of(status.get("lastDecisionTime")) if is_decided else None


def _is_count(value: JsonValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
