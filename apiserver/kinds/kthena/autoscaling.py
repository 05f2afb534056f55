"""The kinds AutoscalingPolicy and AutoscalingPolicyBinding: names, columns, object defaults, warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.activity import activity_source
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicy, behavior_fill, policy_advice
from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import capacities_of, named_by, targets_of
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.kinds.meta import AGE, READY
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json
from apiserver.schema.kind import Column, ComputedDefault, Kind, Version
from apiserver.schema.paths import FieldPath

_MEANINGLESS: Final = ("uid", "resourceVersion", "fieldPath")
_LEAST_COST_PERCENT: Final = 100
_ASLEEP: Final = f"at 0 replicas no pod reports metrics; {ACTIVITY} wakes it"


def binding_advice(value: Json) -> list[str]:
    """Return warnings about a valid binding."""
    spec = value["spec"]
    annotations = capacities_of(value).problems
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


def _behavior(value: Json) -> Iterator[ComputedDefault]:
    return behavior_fill(value.get("spec", {}), ("spec",))


def _policy_advice(value: Json) -> list[str]:
    return policy_advice(value["spec"], ("spec",))


AUTOSCALING_POLICY: Final = Kind(
    group=REGISTRY,
    kind="AutoscalingPolicy",
    plural="autoscalingpolicies",
    short_names=("asp",),
    categories=("stowplan", "autoscaling"),
    versions=(
        Version(
            name="v1alpha1",
            declaration=AutoscalingPolicy,
            is_storage=True,
            columns=(
                Column("Metric", "string", ".spec.metrics[0].metricName", "The first metric."),
                Column(
                    "Target",
                    "string",
                    ".spec.metrics[0].targetValue",
                    "Target value of the metric per replica.",
                ),
                Column(
                    "Tolerance",
                    "integer",
                    ".spec.tolerancePercent",
                    "Deviation from the target that is ignored, in percent.",
                ),
                AGE,
                Column(
                    "Panic",
                    "integer",
                    ".spec.behavior.scaleUp.panicPolicy.panicThresholdPercent",
                    "Demand at which panic mode begins, in percent of the current replicas.",
                    priority=1,
                ),
            ),
            fill=(_behavior,),
            advise=(_policy_advice,),
        ),
    ),
)

AUTOSCALING_POLICY_BINDING: Final = Kind(
    group=REGISTRY,
    kind="AutoscalingPolicyBinding",
    plural="autoscalingpolicybindings",
    short_names=("aspb",),
    categories=("stowplan", "autoscaling"),
    versions=(
        Version(
            name="v1alpha1",
            declaration=AutoscalingPolicyBinding,
            is_storage=True,
            columns=(
                Column("Policy", "string", ".spec.policyRef.name", "Policy that applies."),
                Column(
                    "Target",
                    "string",
                    ".spec.scalingConfiguration.target.targetRef.name",
                    "Target, if there is only one.",
                ),
                Column("Min", "integer", ".spec.scalingConfiguration.minReplicas", "Fewest replicas."),
                Column("Max", "integer", ".spec.scalingConfiguration.maxReplicas", "Most replicas."),
                Column("Current", "integer", ".status.currentReplicas", "Current replicas of all targets."),
                Column("Desired", "integer", ".status.desiredReplicas", "Desired replicas of all targets."),
                Column(
                    "Wanted",
                    "integer",
                    ".status.decision.wantedReplicas",
                    "Replicas that the metrics ask for, without limits.",
                ),
                *READY,
                AGE,
                Column(
                    "Limited by",
                    "string",
                    ".status.decision.limitedBy",
                    "Limits that changed what the metrics ask for.",
                    priority=1,
                ),
                Column("Metric", "string", ".status.metrics[0].name", "The first metric.", priority=1),
                Column(
                    "Value",
                    "string",
                    ".status.metrics[0].value",
                    "Sum of the metric over the replicas.",
                    priority=1,
                ),
                Column(
                    "Per replica",
                    "string",
                    ".status.metrics[0].targetValue",
                    "Target value of the metric per replica.",
                    priority=1,
                ),
                Column(
                    "First of several",
                    "string",
                    ".spec.optimizerConfiguration.params[0].target.targetRef.name",
                    "First target, if several share a load.",
                    priority=1,
                ),
                Column(
                    "Message",
                    "string",
                    ".status.decision.message",
                    "The decision, in one sentence.",
                    priority=1,
                ),
            ),
            advise=(binding_advice,),
            references=named_by,
        ),
    ),
)


def effective_policy(spec: Json) -> Json:
    """Return a policy spec with every default filled in, for readers of objects that were never admitted."""
    result: Json = with_defaults(AUTOSCALING_POLICY.storage_version, {"spec": spec})["spec"]
    return result
