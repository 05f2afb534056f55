"""Condition types and reasons of VariantAutoscalings, and reasons of their events.

docs/troubleshooting.md explains each of them; a test compares the page with this file.
"""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """The type of a condition. The first seven are always set on a planned variant, with three exceptions.

    `AcceleratorResolved` and `CostResolved` are set if there is something to report, `DecisionFollowed`
    unless the decision is advice.
    """

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
