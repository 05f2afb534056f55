"""Types and reasons of the conditions of ModelServers, ModelRoutes and InferenceObjectives.

docs/models.md explains each of them; a test compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.kthena.groups import SERVING
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json


class TrafficCondition(StrEnum):
    """Condition types."""

    ACCEPTED = "Accepted"
    RESOLVED_REFS = "ResolvedRefs"
    READY = "Ready"


class TrafficReason(StrEnum):
    """Condition reasons."""

    ACCEPTED = "Accepted"
    WITH_WARNINGS = "AcceptedWithWarnings"
    INVALID = "Invalid"
    NAME_TAKEN = "NameTaken"
    UPSTREAM_CONTROLLER = "UpstreamController"

    RESOLVED = "ResolvedRefs"
    NO_PODS = "NoPods"
    BACKEND_NOT_FOUND = "BackendNotFound"
    POOL_NOT_FOUND = "PoolNotFound"
    POOLS_NOT_SERVED = "PoolsNotServed"
    INVALID_KIND = "InvalidKind"

    ENDPOINTS_READY = "EndpointsReady"
    TARGETS_NOT_READY = "TargetsNotReady"
    NO_ENDPOINTS = "NoEndpoints"
    NO_PAIRS = "NoPairs"


Finding = tuple[bool | None, StrEnum, str]
"""Whether a condition is true, or None if that is unknown; the reason; and the message."""

Findings = Mapping[StrEnum, Finding]
"""Findings by condition type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficStatus:
    """The status of one object."""

    findings: Findings
    members: Json = field(default_factory=dict)
    """Other fields of its status."""


def acceptance(value: Json, *, is_unread: bool = False) -> Finding:
    """Return whether an object is valid, with warnings: it may have been stored before our validation.

    An object `is_unread` if Kthena's releases read one of the same name in another group.
    """
    served = find_version(value["apiVersion"], value["kind"])
    if served is None:
        raise LookupError(value["kind"])
    spec = {name: item for name, item in value.items() if name != "status"}
    if errors := errors_of(*served, spec):
        return False, TrafficReason.INVALID, "; ".join(map(str, errors))
    warnings = [text for advise in served[1].advise for text in advise(spec)]
    if is_unread:
        warnings.append(f"Kthena's releases read the one of this name in {SERVING}: delete one of the two")
    if warnings:
        return True, TrafficReason.WITH_WARNINGS, "; ".join(warnings)
    return True, TrafficReason.ACCEPTED, "valid"


def left_alone(kind: str, upstream: str) -> TrafficStatus:
    """Return the status of an object whose kind another controller manages."""
    reason = TrafficReason.UPSTREAM_CONTROLLER
    return TrafficStatus(findings={TrafficCondition.ACCEPTED: (None, reason, why_left_alone(kind, upstream))})


def why_left_alone(kind: str, upstream: str) -> str:
    """Return the message that another controller may manage a kind, with advice if none does."""
    return (
        f"the definition {upstream} is installed, so the controller of it may act on {kind}s, and this one"
        " leaves them alone; if that controller is gone, delete the definition"
    )
