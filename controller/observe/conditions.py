"""Condition types and reasons of VariantAutoscalings, reasons of their events, and the list in a status.

docs/troubleshooting.md explains each of them; a test compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeVar

from apiserver.schema.json import Json


class ConditionType(StrEnum):
    """The type of a condition. The first eight are always set on a planned variant, with three exceptions.

    `AcceleratorResolved` and `CostResolved` are set if there is something to report, `DecisionFollowed`
    unless the decision is advice.
    """

    READY = "Ready"
    TARGET_RESOLVED = "TargetResolved"
    DECISION_FOLLOWED = "DecisionFollowed"
    ACCELERATOR_RESOLVED = "AcceleratorResolved"
    SERVICE_CLASS_RESOLVED = "ServiceClassResolved"
    COST_RESOLVED = "CostResolved"
    ANNOTATIONS_RESOLVED = "AnnotationsResolved"
    METRICS_AVAILABLE = "MetricsAvailable"
    OPTIMIZATION_READY = "OptimizationReady"
    PERFORMANCE_AS_DECLARED = "PerformanceAsDeclared"
    ATTAINMENT_KEPT = "AttainmentKept"
    LIMITS_KEPT = "LimitsKept"
    ADVISORY = "Advisory"
    PLACEMENT_FOLLOWED = "PlacementFollowed"


class ConditionReason(StrEnum):
    """The reason of a condition."""

    TARGET_FOUND = "TargetFound"
    TARGET_NOT_SCALED = "TargetNotScaled"
    TARGET_NOT_FOUND = "TargetNotFound"
    TARGET_CLAIMED = "TargetClaimed"
    TARGET_NOT_SUPPORTED = "TargetNotSupported"
    TARGET_SCALED_BY_OTHER = "TargetScaledByOther"
    TARGET_SCALED_TWICE = "TargetScaledTwice"
    MORE_METRICS_READ = "MoreMetricsRead"
    METRIC_SELECTOR_DIFFERS = "MetricSelectorDiffers"
    METRIC_TARGET_DIFFERS = "MetricTargetDiffers"
    AUTOSCALER_NEVER_SCALES = "AutoscalerNeverScales"
    INVALID_CONFIGURATION = "InvalidConfiguration"

    REPLICAS_AS_DECIDED = "ReplicasAsDecided"
    REPLICAS_EXPECTED = "ReplicasExpected"
    EXTERNAL_METRICS_UNAVAILABLE = "ExternalMetricsUnavailable"
    EXTERNAL_METRICS_TAKEN_OVER = "ExternalMetricsTakenOver"
    AUTOSCALER_NOT_ACTIVE = "AutoscalerNotActive"
    REPLICAS_BELOW_DECISION = "ReplicasBelowDecision"
    PODS_MISSING = "PodsMissing"

    ACCELERATOR_DIFFERS = "AcceleratorDiffers"

    CLASS_FOUND = "ClassFound"
    OBJECTIVE_FOUND = "ObjectiveFound"
    NO_CLASS = "NoClass"
    CLASS_NOT_FOUND = "ClassNotFound"
    CLASS_NOT_ALLOWED = "ClassNotAllowed"
    CLASS_INVALID = "ClassInvalid"

    COST_NOT_ALLOWED = "CostNotAllowed"
    PRICE_INVALID = "PriceInvalid"

    NO_ANNOTATIONS = "NoAnnotations"
    ANNOTATIONS_FOLLOWED = "AnnotationsFollowed"
    ANNOTATION_NOT_UNDERSTOOD = "AnnotationNotUnderstood"

    METRICS_AVAILABLE = "MetricsAvailable"
    METRICS_BY_QUORUM = "MetricsByQuorum"
    METRICS_HELD = "MetricsHeld"
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    MODEL_NOT_SERVED = "ModelNotServed"
    DEMAND_NOT_VISIBLE = "DemandNotVisible"

    OPTIMIZATION_SUCCEEDED = "OptimizationSucceeded"
    OPTIMIZATION_FAILED = "OptimizationFailed"

    PERFORMANCE_DIFFERS = "PerformanceDiffers"
    TARGETS_UNREALISTIC = "TargetsUnrealistic"

    TARGETS_MET = "TargetsMet"
    TARGETS_MISSED = "TargetsMissed"

    LIMIT_EXCEEDED = "LimitExceeded"

    CLUSTER_ADVISORY = "ClusterAdvisory"
    NAMESPACE_ADVISORY = "NamespaceAdvisory"
    OBJECT_ADVISORY = "ObjectAdvisory"

    PLACED_ELSEWHERE = "PlacedElsewhere"
    """Also the reason of an event."""


class EventReason(StrEnum):
    """Reasons of events, in addition to those of decisions and of changed conditions."""

    MOVED = "Moved"
    ROOM_MADE = "RoomMade"
    SETTINGS_INVALID = "SettingsInvalid"
    """On a ConfigMap of settings."""

    SETTINGS_VALID = "SettingsValid"
    """On a ConfigMap of settings."""


Finding = tuple[bool, ConditionReason, str]
"""Whether a condition is true, its reason, and its message."""


_LONGEST_MESSAGE: Final = 1024

C = TypeVar("C", bound=StrEnum)
R = TypeVar("R", bound=StrEnum)


def condition_list(
    value: Json,
    findings: Mapping[C, tuple[bool | None, R, str]],
    *,
    now: datetime,
    published: Json | None = None,
) -> list[Json]:
    """Return findings as conditions (None: Unknown). Transition times change with the status only.

    `published` is the published status of an object without one of its own.
    """
    status = value.get("status") if published is None else published
    known = {item.get("type"): item for item in (status or {}).get("conditions") or []}
    return [
        {
            "type": str(kind),
            "status": _status(holds),
            "reason": str(reason),
            "message": shorten(text),
            "observedGeneration": value["metadata"].get("generation", 0),
            "lastTransitionTime": _transition_time(known.get(str(kind)), _status(holds), now=now),
        }
        for kind, (holds, reason, text) in findings.items()
    ]


def readiness(
    findings: Mapping[C, tuple[bool | None, StrEnum, str]],
    *,
    needed: Sequence[C],
    fine: tuple[StrEnum, str],
    is_short: bool = False,
    hints: AbstractSet[StrEnum] = frozenset(),
) -> tuple[bool, StrEnum, str]:
    """Return the finding for `Ready`: whether every determined condition in `needed` holds.

    The reason and message are those of the worst finding: a needed condition that does not hold (in the order
    of `needed`), then `fine` if it is about a shortage, then another condition that does not hold, or one
    whose reason is in `hints`. If nothing is wrong, they are `fine`. A shortage keeps `Ready` true: tools
    that wait for it, such as those of GitOps, would otherwise wait for accelerators.
    """
    for kind in needed:
        if kind in findings and findings[kind][0] is False:
            _, reason, message = findings[kind]
            return False, reason, message
    if is_short:
        return True, *fine
    for holds, reason, message in findings.values():
        if holds is False or reason in hints:
            return True, reason, message
    return True, *fine


def shorten(message: str) -> str:
    """Return a message shortened to the maximum length in a status."""
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"


def moment(time: datetime) -> str:
    """Return a time as Kubernetes formats it: RFC 3339, whole seconds, UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(holds: bool | None) -> str:
    return "Unknown" if holds is None else str(holds)


def _transition_time(known: Json | None, status: str, *, now: datetime) -> str:
    if known is not None and known.get("status") == status and known.get("lastTransitionTime"):
        return str(known["lastTransitionTime"])
    return moment(now)
