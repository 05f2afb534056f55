"""HorizontalPodAutoscalers on what bindings scale: which follow the decision, and which go their own way."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json
from controller.observe.targets import TargetKey

BOUND_METRIC: Final = "policy_desired_replicas"
"""The external metric by which a HorizontalPodAutoscaler follows a binding."""

KEDA_LABEL: Final = "scaledobject.keda.sh/name"
"""On HorizontalPodAutoscalers that KEDA makes, whose metrics have names of its own."""


def why_unheeded(key: TargetKey, autoscaler: Json | None) -> str:
    """Return why nobody does to a target what is decided; empty where a HorizontalPodAutoscaler does."""
    what = f"{key.called} {key.name!r}"
    if autoscaler is None:
        return (
            f"no HorizontalPodAutoscaler targets {what}, so unless something else reads the metric nothing"
            " scales"
        )
    is_of_keda = KEDA_LABEL in (autoscaler["metadata"].get("labels") or {})
    if is_of_keda or BOUND_METRIC in _metric_names(autoscaler):
        return ""  # what one of KEDA's reads stands in its ScaledObject
    return f"HorizontalPodAutoscaler {autoscaler['metadata']['name']!r} scales {what} without {BOUND_METRIC}"


def second_writer(key: TargetKey, autoscaler: Json) -> str:
    """Return what is to be said of a HorizontalPodAutoscaler where the controller writes scales itself."""
    return (
        f"HorizontalPodAutoscaler {autoscaler['metadata']['name']!r} scales {key.called} {key.name!r}, so the"
        " controller writes no scale of this binding; delete that one, or let it follow the decision where"
        " scaling.mode is published"
    )


def _metric_names(autoscaler: Json) -> set[str]:
    metrics = (autoscaler.get("spec") or {}).get("metrics") or []
    return {((item.get("external") or {}).get("metric") or {}).get("name", "") for item in metrics}
