"""The metrics by which a HorizontalPodAutoscaler follows a decision of Stowplan."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from apiserver.schema.json import Json

VARIANT_METRIC: Final = "wva_desired_replicas"
"""The external metric through which a HorizontalPodAutoscaler follows a VariantAutoscaling."""

BOUND_METRIC: Final = "policy_desired_replicas"
"""The external metric through which a HorizontalPodAutoscaler follows an AutoscalingPolicyBinding."""

KEDA_LABEL: Final = "scaledobject.keda.sh/name"
"""The label of HorizontalPodAutoscalers created by KEDA. Their metrics are declared in a ScaledObject and
have names of their own."""


def may_follow(autoscaler: Json, metrics: Collection[str]) -> bool:
    """Tell whether an autoscaler reads one of `metrics`, or may do so under a metric name of KEDA."""
    if KEDA_LABEL in (autoscaler["metadata"].get("labels") or {}):
        return True
    read = (autoscaler.get("spec") or {}).get("metrics") or []
    return any(((item.get("external") or {}).get("metric") or {}).get("name") in metrics for item in read)
