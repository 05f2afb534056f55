"""What a HorizontalPodAutoscaler goes by: a number that was decided here, or metrics of its own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from apiserver.schema.json import Json

VARIANT_METRIC: Final = "wva_desired_replicas"
"""The external metric by which one follows a VariantAutoscaling."""

BOUND_METRIC: Final = "policy_desired_replicas"
"""The one by which it follows an AutoscalingPolicyBinding."""

KEDA_LABEL: Final = "scaledobject.keda.sh/name"
"""On those that KEDA makes: what they read stands in a ScaledObject, under names of its own."""


def may_follow(autoscaler: Json, metrics: Collection[str]) -> bool:
    """Tell whether an autoscaler reads one of our metrics, or may do so under a name of KEDA's."""
    if KEDA_LABEL in (autoscaler["metadata"].get("labels") or {}):
        return True
    read = (autoscaler.get("spec") or {}).get("metrics") or []
    return any(((item.get("external") or {}).get("metric") or {}).get("name") in metrics for item in read)
