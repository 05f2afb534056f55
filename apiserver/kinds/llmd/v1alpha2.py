"""VariantAutoscaling `v1alpha2`: the hub and storage version.

It has the fields of the current shape and, as optional fields with the same names, those of the legacy shape
that the planner can use. The minimum of `numReplicas` is 0, because a variant that is scaled to zero must be
representable. (The reference page of the current shape says 1; its own releases lowered that ten days later.)
Length limits are ours.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import DnsSubdomain, KeyName
from apiserver.kinds.meta import Condition, CrossVersionObjectReference, DecimalText, Int32, Time
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Items, Length, MapKeys, Properties, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import LessOrEqual, WebhookOnly

LONGEST_PARAMETER: Final = 64
"""The maximum number of characters of a parameter. The schema rejects longer ones."""

_NUMBER: Final = re.compile(r"^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$")


NUMERIC: Final = (
    "The values of `decodeParms` and `prefillParms` are decimal numbers without a sign, such as 20.58, .5 or"
    " 1e3."
)
"""The rule for parameters as a sentence."""


EXPECTED_PARAMETERS: Final = {"decodeParms": ("alpha", "beta"), "prefillParms": ("gamma", "delta")}
"""The parameters of each phase. Others are allowed and ignored."""


def numeric_parameters(value: Json, path: FieldPath) -> list[FieldError]:
    """Return an error for each parameter that is not a non-negative decimal number."""
    detail = "must be a non-negative decimal number such as 20.58"
    return [
        errors.invalid(path.child(phase).key(name), text, detail)
        for phase in EXPECTED_PARAMETERS
        for name, text in value.get(phase, {}).items()
        if len(text) <= LONGEST_PARAMETER and not _NUMBER.fullmatch(text)
    ]


def missing_parameters(profile: Json) -> list[str]:
    """Return `phase.name` of each expected parameter that is missing in a valid performance profile."""
    return [
        f"{phase}.{name}"
        for phase, names in EXPECTED_PARAMETERS.items()
        for name in names
        if name not in profile.get(phase, {})
    ]


ModelName = Annotated[str, Length(1, 512)]
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

    perf_parms: Maybe[PerfParms] = UNSET
    """The parameters of the latency model. If unset, capacity is learned from the engines."""

    max_batch_size: Annotated[int, Range(1)]
    """The maximum number of requests that one replica serves concurrently."""


@declaration()
class ConfigMapKeyRef:
    """A reference to a key of a ConfigMap."""

    name: Annotated[DnsSubdomain, Length(1, 253)]
    """The name of the ConfigMap, in the namespace that holds Stowplan's settings."""

    key: Annotated[KeyName, Length(1, 253)]
    """The key in the data of the ConfigMap."""


@declaration(LessOrEqual("minReplicas", "maxReplicas"))
class VariantAutoscalingSpec:
    """The desired state of a VariantAutoscaling: its model, scale target and service level."""

    scale_target_ref: Annotated[CrossVersionObjectReference, Atomic()]
    """The object to scale, in the same namespace. A HorizontalPodAutoscaler carries out the decision."""

    model_id: ModelName
    """The identifier of the model, equal to the label `model_name` of its engines' metrics."""

    variant_cost: Maybe[DecimalText] = UNSET
    """The cost of one replica. Admission sets it to 10.0 if none of `accelerator`, `acceleratorCount`,
    `sloClassRef` and `variantProfile` is set. If it is unset or 10.0, the unit cost of the accelerator
    applies, or 10.0 if that is unknown. A variant whose cost is above 1000000000 is not planned."""

    accelerator: Maybe[Annotated[str, Length(1, 253)]] = UNSET
    """The accelerator type of the variant. Defaults to the label `inference.optimization/acceleratorName`, or
    else to the accelerator that the pods of the scale target select."""

    accelerator_count: Maybe[Annotated[int, Range(1)]] = UNSET
    """The number of accelerators per replica. Defaults to the number that the pods of the scale target
    request."""

    slo_class_ref: Maybe[ConfigMapKeyRef] = UNSET
    """The service class, which defines the priority and the latency targets. Defaults to the class that lists
    the model."""

    variant_profile: Maybe[VariantProfile] = UNSET
    """The performance profile of the variant. If unset, capacity is learned from the engines."""

    min_replicas: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The minimum number of replicas, beside that of the HorizontalPodAutoscaler: the higher one applies. 0
    allows the variant to be scaled to zero. If unset, only that of the autoscaler applies."""

    max_replicas: Maybe[Annotated[Int32, Range(1)]] = UNSET
    """The maximum number of replicas, beside that of the HorizontalPodAutoscaler: the lower one applies. If
    unset, only that of the autoscaler applies."""


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

    num_replicas: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The desired number of replicas."""


@declaration()
class ActuationStatus:
    """The state of actuation: whether the last decision is published."""

    applied: Maybe[bool] = UNSET
    """Whether the decision is published as a metric for the HorizontalPodAutoscaler."""


@declaration()
class Demand:
    """The load of the whole model, shared by its variants. Rates are in requests per second."""

    requests_per_second: DecimalText
    """The current arrival rate."""

    upper_requests_per_second: DecimalText
    """The upper bound of the arrival rate until replicas started now become ready."""

    start_seconds: Annotated[int, Range(0)]
    """The time that a replica takes to start, in seconds."""

    backlog_requests: Maybe[Annotated[int, Range(0)]] = UNSET
    """The number of requests forecast to be waiting by then."""

    avg_input_tokens: Maybe[DecimalText] = UNSET
    """The mean prompt length of recent requests, in tokens."""

    avg_output_tokens: Maybe[DecimalText] = UNSET
    """The mean output length of recent requests, in tokens."""


@declaration()
class LearnedPerformance:
    """Performance measured on the engines of the variant. Learning resumes from it after a restart."""

    decode_parms: Parameters
    """The parameters `alpha` and `beta`: a step takes alpha + beta * sequences, in milliseconds."""

    prefill_parms: Parameters
    """The parameter `delta`: the additional time per prompt token of a step, in milliseconds."""

    samples: Annotated[int, Range(0)]
    """The number of observations. Recent ones have more weight."""

    start_seconds: Maybe[Annotated[int, Range(0)]] = UNSET
    """The time from the start of a pod until it was ready, in seconds."""

    kv_cache_tokens: Maybe[Annotated[int, Range(1)]] = UNSET
    """The size of the KV cache of one replica, in tokens."""

    utilization: Maybe[DecimalText] = UNSET
    """The planned share of a replica's full throughput, as a fraction, so that the promised share of requests
    is within the latency targets."""


@declaration()
class ServiceLevel:
    """The promised and attained shares of the model's requests in the last hour, as fractions."""

    promised: DecimalText
    """The promised share of requests within both targets: the `attainment` of the service class."""

    ttft_target: Maybe[DecimalText] = UNSET
    """The target for the time to first token, in seconds."""

    itl_target: Maybe[DecimalText] = UNSET
    """The target for the mean time between tokens of a request, in seconds."""

    attained: DecimalText
    """The share of requests that were within both targets."""

    ttft_missed: DecimalText
    """The share of requests whose time to first token was above the target, including those that clients gave
    up."""

    itl_missed: DecimalText
    """The share of requests whose mean time between tokens was above the target."""

    requests: Annotated[int, Range(0)]
    """The number of requests in the last hour, or since the controller started if that was later."""


@declaration()
class Decision:
    """The last decision, with its reason and the numbers behind it."""

    reason: Annotated[str, Length(1, 64)]
    """The outcome of the decision: ScaleUp, ScaleDown, Steady, Shortage, Holding or Unplanned."""

    message: Annotated[str, Length(maximum=1024)]
    """A human-readable explanation of the decision, in one sentence with numbers."""

    demand: Maybe[Demand] = UNSET
    """The load of the whole model. Unset while it is unknown."""

    required_requests_per_second: Maybe[DecimalText] = UNSET
    """The capacity required for the whole model, in requests per second."""

    capacity_per_replica: Maybe[DecimalText] = UNSET
    """The capacity of one replica of this variant within its latency targets, in requests per second."""

    capacity_limit: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """The limit that determines this capacity, such as `TTFT 2 s`, `ITL 80 ms` or `a batch of 256`."""

    capacity_source: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """The source of this capacity: Learned, LastKnown, Profile, Estimated, Catalog or Unknown."""

    performance: Maybe[LearnedPerformance] = UNSET
    """The performance measured on the engines of the variant."""

    service_level: Maybe[ServiceLevel] = UNSET
    """The promised and the attained share of requests within the latency targets. Unset without targets, and
    before the first requests."""

    unconstrained_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """The number of replicas that the plan would grant in an unlimited cluster."""

    granted_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """The number of replicas that the plan grants in this cluster."""

    ready_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """The number of replicas that are ready."""

    unmet_per_mille: Maybe[Annotated[int, Range(0, 1000)]] = UNSET
    """The share of the model's required capacity that the plan does not provide, in thousandths."""

    relief: Maybe[Annotated[str, Length(maximum=256)]] = UNSET
    """The change that would reduce the shortage most, such as `+1 free 8-accelerator H100 node`. Unset
    without a shortage, and if none is known."""

    bound_by: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """The constraint that limits the granted replicas, such as Accelerators, NodeSize, MaxReplicas or
    Priority."""

    signal: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """The quality of the demand signal: Fresh, Quorum, Held or Unknown."""

    priority: Maybe[Annotated[int, Range(1, 100)]] = UNSET
    """The priority of the service class, from 1 (served first) to 100 (served last)."""

    cost_per_replica: Maybe[DecimalText] = UNSET
    """The effective cost of one replica."""

    saved_per_hour: Maybe[Annotated[str, Length(maximum=32)]] = UNSET
    """The cost per hour that following the decision would save; negative if it would cost more. Only for
    advice."""

    cost_source: Maybe[Literal["VariantCost", "UnitCost", "Default"]] = UNSET
    """The source of the cost: the spec, the unit cost of the accelerator, or the default."""

    solver_status: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """The status of the solver: Optimal, Feasible, TimedOut or Failed."""

    gap: Maybe[Annotated[str, Length(maximum=32)]] = UNSET
    """The relative gap between the plan and the proven bound, as a fraction. 0 if the plan is proven
    optimal."""


@declaration()
class VariantAutoscalingStatus:
    """The observed state of a VariantAutoscaling, and the last decision about it."""

    current_alloc: Maybe[Allocation] = UNSET
    """The current replicas of the variant, and what they run on."""

    desired_optimized_alloc: Maybe[OptimizedAlloc] = UNSET
    """The desired replicas of the variant, and what they should run on."""

    actuation: Maybe[ActuationStatus] = UNSET
    """The state of actuation: whether the last decision is published."""

    decision: Maybe[Decision] = UNSET
    """The last decision, with its reason and the numbers behind it."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """The conditions of the variant. `Ready`: the load is known, and the decision about it is followed, or is
    advice; the reason is that of the worst problem. `TargetResolved`: the scale target exists.
    `ServiceClassResolved`: the service class exists and may be used. `CostResolved`: the writer may set the
    cost. `MetricsAvailable`: the engines report metrics. `PerformanceAsDeclared`: the engines are as
    fast as the profile predicts, and the latency targets can be met. `AttainmentKept`: in the last hour, the
    promised share of requests was within the latency targets. `OptimizationReady`: the last decision comes
    from a new plan. `AnnotationsResolved`: Stowplan's annotations are valid. `LimitsKept`: no quota or budget
    is exceeded. `Advisory`: the decision is not published. `PlacementFollowed`: pods run in their planned
    places."""


@declaration()
class VariantAutoscaling:
    """A variant: one way to run a model. It is scaled jointly with the other variants of the model."""

    spec: VariantAutoscalingSpec
    """The desired state of the variant: its model, scale target and service level."""

    status: Maybe[VariantAutoscalingStatus] = UNSET
    """The observed state of the variant, and the last decision about it. Written by the controller."""
