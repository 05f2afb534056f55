"""Status of a ModelServer."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.schema.json import Json
from controller.traffic.conditions import Found, TrafficCondition, acceptance
from controller.traffic.endpoints import server_endpoints


def server_found(server: Json, pods: Sequence[Json]) -> Found:
    """Return the status of a ModelServer; `pods` are those of its namespace."""
    found = server_endpoints(server, pods)
    return Found(
        findings={
            TrafficCondition.ACCEPTED: acceptance(server),
            TrafficCondition.RESOLVED_REFS: found.resolved,
            TrafficCondition.READY: found.readiness,
        },
        members=found.counts,
    )
