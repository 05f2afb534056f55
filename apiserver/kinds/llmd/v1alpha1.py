"""VariantAutoscaling `v1alpha1`: the union of the three shapes released under this version name.

S1 *modelProfile* lists candidate accelerators; S2 *legacy* describes one variant with its performance
profile; S3 *current* has a scale target and a cost. Every field of each shape is optional here, so that the
schema prunes none of them; the rules constrain which may be combined. Length limits are ours. Types that both
versions have alike are those of `v1alpha2`, which outlives this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from apiserver.kinds.llmd.v1alpha2 import (
    ActuationStatus,
    Allocation,
    ConfigMapKeyRef,
    ModelName,
    OptimizedAlloc,
    PerfParms,
)
from apiserver.kinds.meta import Condition, CrossVersionObjectReference, DecimalText, Int32
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN, REQUIRED, FieldError, forbidden, required
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Items, Length, MapKeys, Pattern, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, LessOrEqual, ValidationRule, name_list

LEGACY_FIELDS: Final = ("variantID", "accelerator", "acceleratorCount", "sloClassRef", "variantProfile")
"""The fields of S2, which must be set all together or not at all. `sloClassRef` belongs to S1 as well, and
may be set alone."""

_ONLY_LEGACY: Final = ("variantID", "accelerator", "acceleratorCount", "variantProfile")
_ALL_LEGACY: Final = (*_ONLY_LEGACY, "sloClassRef")

VariantIdentifier = Annotated[
    str,
    Length(1, 800),
    Pattern(
        r"^.+-[A-Za-z0-9]+-[1-9][0-9]*$",
        says="of the form {modelID}-{accelerator}-{acceleratorCount}, such as meta/llama-3.1-8b-A100-4",
    ),
]


@declaration()
class VariantProfile:
    """The performance profile of one variant."""

    perf_parms: PerfParms
    """The parameters of the latency model."""

    max_batch_size: Annotated[int, Range(1)]
    """The maximum number of requests that one replica serves concurrently."""


@declaration()
class AcceleratorProfile:
    """One candidate of the modelProfile shape: an accelerator type and the performance on it."""

    acc: Annotated[str, Length(1, 253)]
    """The accelerator type, such as A100."""

    acc_count: Annotated[int, Range(1)]
    """The number of accelerators per replica."""

    perf_parms: Maybe[PerfParms] = UNSET
    """The parameters of the latency model on this accelerator. If unset, capacity is learned from the
    engines."""

    max_batch_size: Annotated[int, Range(1)]
    """The maximum number of requests that one replica serves concurrently."""


@declaration()
class ModelProfile:
    """The profile of a model on several candidate accelerators (modelProfile shape)."""

    accelerators: Annotated[tuple[AcceleratorProfile, ...], Items(1, 64)]
    """The candidates. When the object is created, the label `inference.optimization/acceleratorName` selects
    the one in use; later, `spec.accelerator` of v1alpha2 changes it."""


_BESIDE_PROFILE: Final = "may not be set together with `modelProfile`"


def _legacy_beside_profile(spec: Json, path: FieldPath) -> Sequence[FieldError]:
    if "modelProfile" not in spec:
        return ()
    return [forbidden(path.child(name), _BESIDE_PROFILE) for name in _ONLY_LEGACY if name in spec]


def _incomplete_legacy(spec: Json, path: FieldPath) -> Sequence[FieldError]:
    if "modelProfile" in spec or spec.keys().isdisjoint(_ONLY_LEGACY):
        return ()
    return [required(path.child(name), _together(name)) for name in _ALL_LEGACY if name not in spec]


def _together(name: str) -> str:
    return f"must be set together with {name_list([n for n in _ALL_LEGACY if n != name], 'and')}"


def _some_legacy_but(name: str) -> str:
    return " || ".join(f"has(self.{other})" for other in _ONLY_LEGACY if other != name)


_LEGACY_RULES: Final = (
    ValidationRule(
        _legacy_beside_profile,
        f"`modelProfile` may not be set together with {name_list(_ONLY_LEGACY, 'or')}.",
        cel=[
            CelRule(
                rule=f"!has(self.{name}) || !has(self.modelProfile)",
                message=_BESIDE_PROFILE,
                reason=FORBIDDEN,
                field_name=name,
            )
            for name in _ONLY_LEGACY
        ],
    ),
    ValidationRule(
        _incomplete_legacy,
        f"{name_list(_ALL_LEGACY, 'and')} are set all together or not at all, unless `modelProfile` is set."
        " `sloClassRef` may be set alone, too.",
        cel=[
            CelRule(
                rule=f"has(self.{name}) || has(self.modelProfile) || !({_some_legacy_but(name)})",
                message=_together(name),
                reason=REQUIRED,
                field_name=name,
            )
            for name in _ALL_LEGACY
        ],
    ),
)


@declaration(*_LEGACY_RULES, LessOrEqual("minReplicas", "maxReplicas"))
class VariantAutoscalingSpec:
    """The desired state of a VariantAutoscaling: its model, scale target and service level."""

    model_id: ModelName
    """The identifier of the model, equal to the label `model_name` of its engines' metrics."""

    scale_target_ref: Maybe[Annotated[CrossVersionObjectReference, Atomic()]] = UNSET
    """The object to scale, in the same namespace. Defaults to the Deployment that is the controlling owner of
    this object, or else to the Deployment with the name of this object."""

    variant_cost: Maybe[DecimalText] = UNSET
    """The cost of one replica. Admission sets it to 10.0 if `scaleTargetRef` is set and no field of the older
    shapes is. If it is unset or 10.0, the unit cost of the accelerator applies, or 10.0 if that is unknown. A
    variant whose cost is above 1000000000 is not planned."""

    variant_id: Maybe[VariantIdentifier] = UNSET
    """The business identifier of the variant, exported as the metric label `variant_id`."""

    accelerator: Maybe[Annotated[str, Length(1, 253)]] = UNSET
    """The accelerator type of the variant, such as A100 or L40S."""

    accelerator_count: Maybe[Annotated[int, Range(1)]] = UNSET
    """The number of accelerators per replica."""

    slo_class_ref: Maybe[ConfigMapKeyRef] = UNSET
    """The service class, which defines the priority and the latency targets."""

    variant_profile: Maybe[VariantProfile] = UNSET
    """The measured performance of the variant, from which its capacity is computed."""

    model_profile: Maybe[ModelProfile] = UNSET
    """The performance of the model on several accelerators (releases without scale targets)."""

    min_replicas: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The minimum number of replicas, beside that of the HorizontalPodAutoscaler: the higher one applies. 0
    allows the variant to be scaled to zero. If unset, only that of the autoscaler applies."""

    max_replicas: Maybe[Annotated[Int32, Range(1)]] = UNSET
    """The maximum number of replicas, beside that of the HorizontalPodAutoscaler: the lower one applies. If
    unset, only that of the autoscaler applies."""


@declaration()
class VariantAutoscalingStatus:
    """The observed state of a VariantAutoscaling, and the last decision about it."""

    current_alloc: Maybe[Allocation] = UNSET
    """The current replicas of the variant, and what they run on."""

    desired_optimized_alloc: Maybe[OptimizedAlloc] = UNSET
    """The desired replicas of the variant, and what they should run on."""

    actuation: Maybe[ActuationStatus] = UNSET
    """The state of actuation: whether the last decision is published."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the variant. `TargetResolved`: the scale target exists. `ServiceClassResolved`: the
    service class exists. `MetricsAvailable`: the engines report metrics. `OptimizationReady`: the last
    decision comes from a new plan."""


@declaration()
class VariantAutoscaling:
    """A variant: one way to run a model. It is scaled jointly with the other variants of the model."""

    spec: VariantAutoscalingSpec
    """The desired state of the variant: its model, scale target and service level."""

    status: Maybe[VariantAutoscalingStatus] = UNSET
    """The observed state of the variant, and the last decision about it. Written by the controller."""
