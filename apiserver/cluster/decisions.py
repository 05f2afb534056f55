"""Which decisions in statuses the metrics API serves.

The API and the controller must agree on it: the controller's heartbeat names the newest decision, which every
reader must have received. Readers would wait forever for one that they do not serve.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeGuard

from apiserver.cluster.timestamps import moment_of
from apiserver.schema.json import Json, JsonValue, as_list, as_object


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
