"""VariantAutoscaling `v1alpha1`: the union of the three shapes released under this version name.

S1 *modelProfile* lists candidate accelerators; S2 *legacy* describes one variant with its performance
profile; S3 *current* has a scale target and a cost. Every field of each shape is optional here, so that the
schema prunes none of them; the rules constrain which may be combined. Length limits are ours.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.core.names import DnsSubdomain, KeyName
from apiserver.kinds.llmd.performance import LONGEST_PARAMETER, NUMERIC, numeric_parameters
from apiserver.kinds.meta import Condition, CrossVersionObjectReference, DecimalText, Time
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Atomic, Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.presence import AllOrNone, Excludes
from apiserver.schema.rules import WebhookOnly

LEGACY_FIELDS: Final = ("variantID", "accelerator", "acceleratorCount", "sloClassRef", "variantProfile")
"""The fields of S2, which must be set all together or not at all. `sloClassRef` belongs to S1 as well, and
may be set alone."""

_ONLY_LEGACY: Final = ("variantID", "accelerator", "acceleratorCount", "variantProfile")

ModelName = Annotated[str, Length(1, 512)]
VariantIdentifier = Annotated[
    str,
    Length(1, 800),
    Pattern(
        r"^.+-[A-Za-z0-9]+-[1-9][0-9]*$",
        says="of the form {modelID}-{accelerator}-{acceleratorCount}, such as meta/llama-3.1-8b-A100-4",
    ),
]
Parameters = Annotated[dict[str, Annotated[str, Length(maximum=LONGEST_PARAMETER)]], Properties(1, 16)]


@declaration(WebhookOnly(numeric_parameters, NUMERIC))
class PerfParms:
    """The latency model of one variant: two linear functions of the batch size."""

    decode_parms: Parameters
    """The parameters `alpha` and `beta`: inter-token latency in milliseconds = alpha + beta * batch size."""

    prefill_parms: Parameters
    """The parameters `gamma` and `delta`: time to first token in milliseconds = gamma + delta * input tokens
    * batch size."""


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


@declaration()
class ConfigMapKeyRef:
    """A reference to a key of a ConfigMap."""

    name: Annotated[DnsSubdomain, Length(1, 253)]
    """The name of the ConfigMap, in the namespace that holds Stowplan's settings."""

    key: Annotated[KeyName, Length(1, 253)]
    """The key in the data of the ConfigMap."""


@declaration(
    Excludes("modelProfile", _ONLY_LEGACY),
    AllOrNone(_ONLY_LEGACY, unless="modelProfile", beside=("sloClassRef",)),
)
class VariantAutoscalingSpec:
    """The desired state of a VariantAutoscaling: its model, scale target and service level."""

    model_id: ModelName
    """The identifier of the model, equal to the label `model_name` of its engines' metrics."""

    scale_target_ref: Maybe[Annotated[CrossVersionObjectReference, Atomic()]] = UNSET
    """The object to scale, in the same namespace. Defaults to the Deployment that is the controlling owner of
    this object, or else to the Deployment with the name of this object."""

    variant_cost: Maybe[DecimalText] = UNSET
    """The cost of one replica. Admission sets it to 10.0 if `scaleTargetRef` is set and no field of the older
    shapes is. If it stays unset, the unit cost of the accelerator applies, or 10.0 if that is unknown. A
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


@declaration()
class Load:
    """The load that an allocation was computed for (oldest releases only)."""

    arrival_rate: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The arrival rate in requests per minute."""

    avg_input_tokens: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The mean prompt length in tokens."""

    avg_output_tokens: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The mean output length in tokens."""


@declaration()
class Allocation:
    """The current replicas of the variant, and what they run on."""

    variant_id: Maybe[Annotated[str, Length(1, 800)]] = UNSET
    """The identifier of the variant."""

    accelerator: Maybe[Annotated[str, Length(1, 253)]] = UNSET
    """The accelerator type in use."""

    num_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """The current number of replicas."""

    max_batch: Maybe[Annotated[int, Range(0)]] = UNSET
    """The maximum number of requests that one replica serves concurrently."""

    variant_cost: Maybe[DecimalText] = UNSET
    """The cost of all replicas."""

    itl_average: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The mean inter-token latency in milliseconds (oldest releases only)."""

    ttft_average: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The mean time to first token in milliseconds (oldest releases only)."""

    load: Maybe[Load] = UNSET
    """The current load (oldest releases only)."""


@declaration()
class OptimizedAlloc:
    """The desired replicas of the variant, and what they should run on."""

    last_run_time: Maybe[Time] = UNSET
    """The time of the decision. It does not change while the decision stays the same; the controller's Lease
    records when the decision was last confirmed."""

    variant_id: Maybe[Annotated[str, Length(1, 800)]] = UNSET
    """The identifier of the variant."""

    accelerator: Maybe[Annotated[str, Length(2, 253)]] = UNSET
    """The accelerator type to use."""

    num_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """The desired number of replicas."""


@declaration()
class ActuationStatus:
    """The state of actuation: whether the last decision is published."""

    applied: Maybe[bool] = UNSET
    """Whether the decision is published as a metric for the HorizontalPodAutoscaler."""


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
