"""Warnings about a valid AutoscalingPolicyBinding that is probably a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.kinds.kthena.autoscalingpolicybinding_activity import ANNOTATION as ACTIVITY
from apiserver.kinds.kthena.autoscalingpolicybinding_activity import activity_problems, activity_source
from apiserver.kinds.kthena.autoscalingpolicybinding_capacity import capacities_of
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import targets_of
from apiserver.schema.json import Json
from apiserver.schema.paths import FieldPath

_MEANINGLESS: Final = ("uid", "resourceVersion", "fieldPath")
_LEAST_COST_PERCENT: Final = 100
_ASLEEP: Final = f"at 0 replicas no pod reports metrics; {ACTIVITY} wakes it"


def binding_advice(value: Json) -> list[str]:
    """Return warnings about a valid binding."""
    spec = value["spec"]
    annotations = [*capacities_of(value).problems, *activity_problems(value)]
    wakes = activity_source(value) is not None
    return [
        *_reference_advice(spec),
        *_scaling_advice(spec, wakes=wakes),
        *_optimizer_advice(spec, wakes=wakes),
        *annotations,
    ]


def _reference_advice(spec: Json) -> Iterator[str]:
    for below, target in targets_of(spec):
        for name in _MEANINGLESS:
            if target.get("targetRef", {}).get(name):
                yield f"{FieldPath(('spec', *below, 'targetRef', name))}: has no effect here"


def _scaling_advice(spec: Json, *, wakes: bool) -> Iterator[str]:
    scaling = spec.get("scalingConfiguration", {})
    if _is_fixed(scaling):
        yield "spec.scalingConfiguration.maxReplicas: equals minReplicas, so nothing is ever scaled"
    if scaling.get("minReplicas") == 0 and not wakes:
        yield f"spec.scalingConfiguration.minReplicas: {_ASLEEP}"


def _optimizer_advice(spec: Json, *, wakes: bool) -> Iterator[str]:
    optimizer = spec.get("optimizerConfiguration", {})
    where, params = "spec.optimizerConfiguration", optimizer.get("params", [])
    if params and all(map(_is_fixed, params)):
        yield f"{where}.params: every maxReplicas equals its minReplicas, so nothing is ever scaled"
    if params and not wakes and all(param.get("minReplicas") == 0 for param in params):
        yield f"{where}.params: {_ASLEEP}"
    if free := [position for position, param in enumerate(params) if not param.get("cost")]:
        others = f" (as in {len(free) - 1} more)" if len(free) > 1 else ""
        yield f"{where}.params[{free[0]}].cost: 0{others} comes first; equal costs are taken by position"
    if optimizer.get("costExpansionRatePercent", 200) < _LEAST_COST_PERCENT:
        yield f"{where}.costExpansionRatePercent: below 100 means 100: nothing costs less than the least"


def _is_fixed(bounds: Json) -> bool:
    return "minReplicas" in bounds and bounds["minReplicas"] == bounds.get("maxReplicas")
