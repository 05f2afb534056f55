"""VariantAutoscaling `v1alpha1`: the union of the three shapes that were released under this name.

S1 *modelProfile* lists candidate accelerators; S2 *legacy* describes one variant with its performance
profile; S3 *current* names a scale target and a cost. Every field of each is optional here, so that the
schema prunes none of them, and the rules say which go together. Bounds on the length of text are ours.
"""

from __future__ import annotations

from typing import Annotated, Final

from apiserver.kinds.core.names import DnsSubdomain, KeyName
from apiserver.kinds.llmd.performance import LONGEST_PARAMETER, numeric_parameters
from apiserver.kinds.meta import Condition, CrossVersionObjectReference, DecimalText, Time
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Atomic, Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.presence import AllOrNone, Excludes
from apiserver.schema.rules import WebhookOnly

LEGACY_FIELDS: Final = ("variantID", "accelerator", "acceleratorCount", "sloClassRef", "variantProfile")
"""The fields of S2, which come all or none. `sloClassRef` was part of S1 as well, and once stood alone."""

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


@declaration(
    WebhookOnly(numeric_parameters, "The values of `decodeParms` and `prefillParms` are decimal numbers.")
)
class PerfParms:
    """How long one step takes, as two straight lines over the batch size."""

    decode_parms: Parameters
    """`alpha` and `beta`: inter-token latency in ms = alpha + beta * batch size."""

    prefill_parms: Parameters
    """`gamma` and `delta`: time to first token in ms = gamma + delta * input tokens * batch size."""


@declaration()
class VariantProfile:
    """Performance of one variant."""

    perf_parms: PerfParms
    """Parameters of the latency model."""

    max_batch_size: Annotated[int, Range(1)]
    """Most requests that one replica serves at a time."""


@declaration()
class AcceleratorProfile:
    """One candidate of the modelProfile shape: an accelerator and the performance on it."""

    acc: Annotated[str, Length(1, 253)]
    """Accelerator type of this candidate, such as A100."""

    acc_count: Annotated[int, Range(1)]
    """Number of accelerators that one replica uses."""

    perf_parms: Maybe[PerfParms] = UNSET
    """Parameters of the latency model on this accelerator. Without them capacity is learned from engines."""

    max_batch_size: Annotated[int, Range(1)]
    """Most requests that one replica serves at a time."""


@declaration()
class ModelProfile:
    """The modelProfile shape: all accelerators that the model was profiled on."""

    accelerators: Annotated[tuple[AcceleratorProfile, ...], Items(1, 64)]
    """Candidates. The one in use is that which the label `inference.optimization/acceleratorName` names when
    the object is created; `spec.accelerator` of v1alpha2 changes it."""


@declaration()
class ConfigMapKeyRef:
    """One key of a ConfigMap."""

    name: Annotated[DnsSubdomain, Length(1, 253)]
    """Name of the ConfigMap, in the namespace where Stowplan keeps its settings."""

    key: Annotated[KeyName, Length(1, 253)]
    """Key in its data."""


@declaration(
    Excludes("modelProfile", _ONLY_LEGACY),
    AllOrNone(_ONLY_LEGACY, unless="modelProfile", beside=("sloClassRef",)),
)
class VariantAutoscalingSpec:
    """The desired state of a VariantAutoscaling: its model, what is scaled, and the service level."""

    model_id: ModelName
    """Identifier of the model, as its engines report it in the label `model_name`."""

    scale_target_ref: Maybe[Annotated[CrossVersionObjectReference, Atomic()]] = UNSET
    """The object that is scaled. Without it the Deployment of the same name is meant."""

    variant_cost: Maybe[DecimalText] = UNSET
    """Cost of one replica. Without it: the unit cost of the accelerator where known, else 10.0."""

    variant_id: Maybe[VariantIdentifier] = UNSET
    """Business identifier of the variant; exported as the metric label `variant_id`."""

    accelerator: Maybe[Annotated[str, Length(1, 253)]] = UNSET
    """Accelerator type of this variant, such as A100 or L40S."""

    accelerator_count: Maybe[Annotated[int, Range(1)]] = UNSET
    """Number of accelerators that one replica uses."""

    slo_class_ref: Maybe[ConfigMapKeyRef] = UNSET
    """The service class: its priority and its latency targets."""

    variant_profile: Maybe[VariantProfile] = UNSET
    """Measured performance of this variant, from which its capacity is calculated."""

    model_profile: Maybe[ModelProfile] = UNSET
    """Performance of the model on several accelerators (releases before scale targets)."""


@declaration()
class Load:
    """The load that an allocation was made for (oldest releases only)."""

    arrival_rate: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """Requests per minute."""

    avg_input_tokens: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """Mean prompt length in tokens."""

    avg_output_tokens: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """Mean answer length in tokens."""


@declaration()
class Allocation:
    """The replicas that the variant has now, and what they run on."""

    variant_id: Maybe[Annotated[str, Length(1, 800)]] = UNSET
    """Identifier of the variant."""

    accelerator: Maybe[Annotated[str, Length(1, 253)]] = UNSET
    """Accelerator type in use."""

    num_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """Number of replicas that exist."""

    max_batch: Maybe[Annotated[int, Range(0)]] = UNSET
    """Most requests that one replica serves at a time."""

    variant_cost: Maybe[DecimalText] = UNSET
    """Cost of all replicas."""

    itl_average: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """Mean inter-token latency in ms (oldest releases only)."""

    ttft_average: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """Mean time to first token in ms (oldest releases only)."""

    load: Maybe[Load] = UNSET
    """The load of the moment (oldest releases only)."""


@declaration()
class OptimizedAlloc:
    """The replicas that the variant should have, and what they should run on."""

    last_run_time: Maybe[Time] = UNSET
    """Time at which this was decided. It stays while nothing changes: the controller's Lease says when that
    was last confirmed."""

    variant_id: Maybe[Annotated[str, Length(1, 800)]] = UNSET
    """Identifier of the variant."""

    accelerator: Maybe[Annotated[str, Length(2, 253)]] = UNSET
    """Accelerator type to use."""

    num_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """Number of replicas that the variant should have."""


@declaration()
class ActuationStatus:
    """Whether the last decision was handed on to those who act on it."""

    applied: Maybe[bool] = UNSET
    """True once the decision is published for the HorizontalPodAutoscaler to read."""


@declaration()
class VariantAutoscalingStatus:
    """The observed state of a VariantAutoscaling, and the last decision about it."""

    current_alloc: Maybe[Allocation] = UNSET
    """The replicas that the variant has now, and what they run on."""

    desired_optimized_alloc: Maybe[OptimizedAlloc] = UNSET
    """The replicas that the variant should have, and what they should run on."""

    actuation: Maybe[ActuationStatus] = UNSET
    """Whether the last decision was handed on to those who act on it."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """`TargetResolved`: the scale target is there. `ServiceClassResolved`: so is the service class.
    `MetricsAvailable`: the engines report. `OptimizationReady`: the last decision was taken anew."""


@declaration()
class VariantAutoscaling:
    """One way to run a model that is scaled jointly with the model's other variants."""

    spec: VariantAutoscalingSpec
    """The desired state of the variant: its model, its scale target and its service level."""

    status: Maybe[VariantAutoscalingStatus] = UNSET
    """The observed state of the variant, and the last decision about it. Written by the controller."""
