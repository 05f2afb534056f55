"""HorizontalPodAutoscalers of bindings' targets: which follow the decision, and which do not."""

from __future__ import annotations

from apiserver.kinds.autoscalers import BOUND_METRIC, may_follow
from apiserver.schema.json import Json
from controller.observe.targets import TargetKey


def why_unheeded(key: TargetKey, autoscaler: Json | None) -> str:
    """Return why a decision for a target takes no effect; empty if a HorizontalPodAutoscaler follows it."""
    what = f"{key.called} {key.name!r}"
    if autoscaler is None:
        return (
            f"no HorizontalPodAutoscaler targets {what}, so nothing scales it unless another client reads"
            " the metric"
        )
    if may_follow(autoscaler, {BOUND_METRIC}):
        return ""
    return f"HorizontalPodAutoscaler {autoscaler['metadata']['name']!r} scales {what} without {BOUND_METRIC}"


def second_writer(key: TargetKey, autoscaler: Json) -> str:
    """Return the message about a HorizontalPodAutoscaler where the controller writes scales itself."""
    return (
        f"HorizontalPodAutoscaler {autoscaler['metadata']['name']!r} scales {key.called} {key.name!r}, so the"
        " controller writes no scale of this binding; delete it, or set scaling.mode to published and let"
        " it follow the decision"
    )
