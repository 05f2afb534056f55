"""Condition types and reasons of AutoscalingPolicyBindings, and the values of their annotations.

docs/policies.md explains each of them; a test compares the page with this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.activity import activity_problems
from apiserver.kinds.annotations import (
    ADVISORY,
    ALLOWED,
    PAUSED,
    PREEMPTION,
    PREFIX,
    SCALE_TO_ZERO_GRACE,
    no_effect,
)
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import CAPACITY, SERVICE_CLASS, capacities_of
from apiserver.schema.durations import seconds
from apiserver.schema.json import Json
from controller.observe.claim import own_annotations

_UNDERSTOOD: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    **{name: ALLOWED[name] for name in (PAUSED, ADVISORY, PREEMPTION)},
    SERVICE_CLASS: (re.compile(r"[a-z0-9.-]{1,253}/[-._a-zA-Z0-9]{1,253}\Z"), "CONFIGMAP/KEY"),
}
"""Allowed values of a binding's annotations, other than its capacities."""


_LONGEST_GRACE_SECONDS: Final = 1800.0
"""Maximum grace period in seconds, as for `scaleToZeroGracePeriod` of a Model."""


class BindingCondition(StrEnum):
    """The type of a binding's condition. docs/policies.md explains each of them, and each reason."""

    READY = "Ready"
    POLICY_RESOLVED = "PolicyResolved"
    TARGETS_RESOLVED = "TargetsResolved"
    DECISION_FOLLOWED = "DecisionFollowed"
    METRICS_AVAILABLE = "MetricsAvailable"
    SCALING_ACTIVE = "ScalingActive"
    SERVICE_CLASS_RESOLVED = "ServiceClassResolved"
    COST_RESOLVED = "CostResolved"
    ANNOTATIONS_RESOLVED = "AnnotationsResolved"
    PLACED = "Placed"
    ADVISORY = "Advisory"


class BindingReason(StrEnum):
    """The reason of a binding's condition."""

    NO_PROBLEM = "NoProblem"

    POLICY_FOUND = "PolicyFound"
    POLICY_NOT_FOUND = "PolicyNotFound"
    INVALID_POLICY = "InvalidPolicy"
    INVALID_BINDING = "InvalidBinding"

    TARGETS_FOUND = "TargetsFound"
    TARGET_NOT_FOUND = "TargetNotFound"
    TARGET_CLAIMED = "TargetClaimed"
    TARGET_SCALED_BY_OTHER = "TargetScaledByOther"
    TARGET_NOT_SCALED = "TargetNotScaled"
    TARGET_SCALED_TWICE = "TargetScaledTwice"
    MORE_METRICS_READ = "MoreMetricsRead"
    METRIC_SELECTOR_DIFFERS = "MetricSelectorDiffers"
    METRIC_TARGET_DIFFERS = "MetricTargetDiffers"
    AUTOSCALER_NEVER_SCALES = "AutoscalerNeverScales"

    REPLICAS_AS_DECIDED = "ReplicasAsDecided"
    REPLICAS_EXPECTED = "ReplicasExpected"
    EXTERNAL_METRICS_UNAVAILABLE = "ExternalMetricsUnavailable"
    EXTERNAL_METRICS_TAKEN_OVER = "ExternalMetricsTakenOver"
    AUTOSCALER_NOT_ACTIVE = "AutoscalerNotActive"
    REPLICAS_BELOW_DECISION = "ReplicasBelowDecision"

    METRICS_AVAILABLE = "MetricsAvailable"
    METRICS_BY_QUORUM = "MetricsByQuorum"
    METRICS_HELD = "MetricsHeld"
    METRICS_UNAVAILABLE = "MetricsUnavailable"

    SCALES_WRITTEN = "ScalesWritten"
    NOTHING_DECIDED = "NothingDecided"
    PAUSED = "Paused"
    WRITER_UNKNOWN = "WriterUnknown"
    WRITER_MAY_NOT_SCALE = "WriterMayNotScale"
    CONTROLLER_MAY_NOT_SCALE = "ControllerMayNotScale"
    WRITE_FAILED = "WriteFailed"

    CLASS_FOUND = "ClassFound"
    OBJECTIVE_FOUND = "ObjectiveFound"
    NO_CLASS = "NoClass"
    CLASS_NOT_FOUND = "ClassNotFound"
    CLASS_NOT_ALLOWED = "ClassNotAllowed"
    CLASS_INVALID = "ClassInvalid"

    COST_NOT_ALLOWED = "CostNotAllowed"
    PRICE_INVALID = "PriceInvalid"

    ALL_PLACED = "AllPlaced"
    NOTHING_TO_PLACE = "NothingToPlace"
    TOO_LITTLE_ROOM = "TooLittleRoom"
    AWAITING_PLAN = "AwaitingPlan"
    NOT_PLANNED = "NotPlanned"

    NO_ANNOTATIONS = "NoAnnotations"
    ANNOTATIONS_FOLLOWED = "AnnotationsFollowed"
    ANNOTATION_NOT_UNDERSTOOD = "AnnotationNotUnderstood"

    CLUSTER_ADVISORY = "ClusterAdvisory"
    NAMESPACE_ADVISORY = "NamespaceAdvisory"
    OBJECT_ADVISORY = "ObjectAdvisory"


BindingFinding = tuple[bool, BindingReason, str]
"""Whether a condition is true, its reason, and its message."""


def annotations_finding(value: Json) -> BindingFinding:
    """Return whether Stowplan's annotations of a binding are valid."""
    ours = own_annotations(value)
    wrong = [*capacities_of(value).problems, *activity_problems(value), *_grace_problems(ours)]
    for name, text in ours.items():
        if name in _UNDERSTOOD:
            pattern, allowed = _UNDERSTOOD[name]
            if not pattern.match(text):
                wrong.append(f"metadata.annotations[{name}]: must be {allowed}")
        elif name not in (CAPACITY, ACTIVITY, SCALE_TO_ZERO_GRACE):
            why = no_effect("AutoscalingPolicyBinding", name.removeprefix(PREFIX))
            wrong.append(f"metadata.annotations[{name}]: {why}")
    if wrong:
        return False, BindingReason.ANNOTATION_NOT_UNDERSTOOD, "; ".join(wrong)
    if ours:
        followed = ", ".join(f"{name}={text}" for name, text in ours.items())
        return True, BindingReason.ANNOTATIONS_FOLLOWED, f"followed: {followed}"
    return True, BindingReason.NO_ANNOTATIONS, f"no annotation {PREFIX}... has an effect"


def grace_seconds(value: Json, default_seconds: float) -> float:
    """Return the time without activity before a binding's last replica is removed, in seconds."""
    text = (value["metadata"].get("annotations") or {}).get(SCALE_TO_ZERO_GRACE)
    return default_seconds if text is None or (grace := _grace(text)) is None else grace


def _grace(text: str) -> float | None:
    duration_seconds = seconds(str(text))
    return (
        duration_seconds
        if duration_seconds is not None and 0 <= duration_seconds <= _LONGEST_GRACE_SECONDS
        else None
    )


def _grace_problems(ours: Mapping[str, str]) -> list[str]:
    if SCALE_TO_ZERO_GRACE not in ours or _grace(ours[SCALE_TO_ZERO_GRACE]) is not None:
        return []
    return [f"metadata.annotations[{SCALE_TO_ZERO_GRACE}]: must be a duration from 0s to 30m, such as 30s"]
