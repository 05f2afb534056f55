"""VariantAutoscaling `v1alpha2`: the hub and storage version.

The current shape, plus, optional and with the same names, what only the legacy shape had and the planner
can use. `numReplicas` starts at 0: a variant that is scaled to zero must be representable (the reference
page of the current shape says 1; its own releases lowered that ten days later). Bounds on the length of
text are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.core.names import DnsSubdomain, KeyName
from apiserver.kinds.llmd.performance import LONGEST_PARAMETER, numeric_parameters
from apiserver.kinds.meta import Condition, CrossVersionObjectReference, DecimalText, Time
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Atomic, Items, Length, MapKeys, Properties, Range
from apiserver.schema.rules import WebhookOnly

ModelName = Annotated[str, Length(1, 512)]
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

    perf_parms: Maybe[PerfParms] = UNSET
    """Parameters of the latency model. Without them capacity is learned from the engines."""

    max_batch_size: Annotated[int, Range(1)]
    """Most requests that one replica serves at a time."""


@declaration()
class ConfigMapKeyRef:
    """One key of a ConfigMap."""

    name: Annotated[DnsSubdomain, Length(1, 253)]
    """Name of the ConfigMap, in the namespace where Stowplan keeps its settings."""

    key: Annotated[KeyName, Length(1, 253)]
    """Key in its data."""


@declaration()
class VariantAutoscalingSpec:
    """The desired state of a VariantAutoscaling: its model, what is scaled, and the service level."""

    scale_target_ref: Annotated[CrossVersionObjectReference, Atomic()]
    """The object that is scaled, in the same namespace. A HorizontalPodAutoscaler acts on it."""

    model_id: ModelName
    """Identifier of the model, as its engines report it in the label `model_name`."""

    variant_cost: Maybe[DecimalText] = UNSET
    """Cost of one replica. Without it: the unit cost of the accelerator where known, else 10.0."""

    accelerator: Maybe[Annotated[str, Length(1, 253)]] = UNSET
    """Accelerator type of this variant. Without it: the label `inference.optimization/acceleratorName`, else
    what the pods of the scale target select."""

    accelerator_count: Maybe[Annotated[int, Range(1)]] = UNSET
    """Accelerators per replica. Without it: what the pods of the scale target request."""

    slo_class_ref: Maybe[ConfigMapKeyRef] = UNSET
    """The service class: its priority and its latency targets. Without it: the class that lists the model."""

    variant_profile: Maybe[VariantProfile] = UNSET
    """Performance of this variant. Without it capacity is learned from the engines."""


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
class Demand:
    """The load of the whole model, shared by its variants. Rates are in requests per second."""

    requests_per_second: DecimalText
    """What arrives now."""

    upper_requests_per_second: DecimalText
    """Upper bound of what arrives until replicas that are started now are ready."""

    start_seconds: Annotated[int, Range(0)]
    """Time that a replica needs to start."""

    backlog_requests: Maybe[Annotated[int, Range(0)]] = UNSET
    """Requests that will still wait by then."""

    avg_input_tokens: Maybe[DecimalText] = UNSET
    """Mean prompt length of late."""

    avg_output_tokens: Maybe[DecimalText] = UNSET
    """Mean answer length of late."""


@declaration()
class LearnedPerformance:
    """What the engines of this variant showed. Learning goes on from here when the controller restarts."""

    decode_parms: Parameters
    """`alpha` and `beta`: a step takes alpha + beta * sequences, in ms."""

    prefill_parms: Parameters
    """`delta`: each prompt token of a step takes delta more, in ms."""

    samples: Annotated[int, Range(0)]
    """Observations that this was learned from; recent ones count more."""

    start_seconds: Maybe[Annotated[int, Range(0)]] = UNSET
    """Time from the start of a pod until it was ready."""

    kv_cache_tokens: Maybe[Annotated[int, Range(1)]] = UNSET
    """Size of the KV cache of one replica."""


@declaration()
class Decision:
    """The reasons for the last decision, with the numbers behind it."""

    reason: Annotated[str, Length(1, 64)]
    """What was decided, in one word: ScaleUp, ScaleDown, Steady, Shortage, Holding or Unplanned."""

    message: Annotated[str, Length(maximum=1024)]
    """The reason for the decision, in one sentence with numbers."""

    demand: Maybe[Demand] = UNSET
    """The load of the whole model. Missing while it is unknown."""

    required_requests_per_second: Maybe[DecimalText] = UNSET
    """Capacity that the whole model is to have, in requests per second."""

    capacity_per_replica: Maybe[DecimalText] = UNSET
    """What one replica of this variant serves within its targets, in requests per second."""

    capacity_limit: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """What limits that, such as `TTFT 2 s`, `ITL 80 ms` or `a batch of 256`."""

    capacity_source: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """How that capacity is known: Learned, LastKnown, Profile, Estimated or Unknown."""

    performance: Maybe[LearnedPerformance] = UNSET
    """What the engines showed of their speed."""

    unconstrained_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """Replicas that an unlimited cluster would get."""

    granted_replicas: Maybe[Annotated[int, Range(0)]] = UNSET
    """Replicas that this cluster can place."""

    unmet_per_mille: Maybe[Annotated[int, Range(0, 1000)]] = UNSET
    """Share of the model's required capacity that the plan does not provide, in thousandths."""

    bound_by: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """What limits the grant, such as Accelerators, NodeSize, MaxReplicas or Priority."""

    signal: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """How well the demand is known: Fresh, Quorum, Held or Unknown."""

    priority: Maybe[Annotated[int, Range(1, 100)]] = UNSET
    """Priority of the service class: 1 is served first, 100 last."""

    cost_per_replica: Maybe[DecimalText] = UNSET
    """Effective cost of one replica."""

    cost_source: Maybe[Literal["VariantCost", "UnitCost", "Default"]] = UNSET
    """Origin of that cost: the spec, the unit cost of the accelerator, or the default."""

    solver_status: Maybe[Annotated[str, Length(1, 64)]] = UNSET
    """What the solver said of the plan: Optimal, Feasible, TimedOut or Failed."""

    gap: Maybe[Annotated[str, Length(maximum=32)]] = UNSET
    """Distance of the plan from the proven bound, as a fraction; 0 when it is proven best."""


@declaration()
class VariantAutoscalingStatus:
    """The observed state of a VariantAutoscaling, and the last decision about it."""

    current_alloc: Maybe[Allocation] = UNSET
    """The replicas that the variant has now, and what they run on."""

    desired_optimized_alloc: Maybe[OptimizedAlloc] = UNSET
    """The replicas that the variant should have, and what they should run on."""

    actuation: Maybe[ActuationStatus] = UNSET
    """Whether the last decision was handed on to those who act on it."""

    decision: Maybe[Decision] = UNSET
    """The reasons for the last decision, with the numbers behind it."""

    conditions: Maybe[Annotated[tuple[Condition, ...], Items(maximum=32), MapKeys("type")]] = UNSET
    """`TargetResolved`: the scale target is there. `ServiceClassResolved`: so is the service class.
    `MetricsAvailable`: the engines report. `PerformanceAsDeclared`: the engines are as fast as the profile
    says, and the latency targets can be met. `OptimizationReady`: the last decision was taken anew.
    `AnnotationsResolved`: Stowplan's annotations are understood. `LimitsKept`: no quota or budget is
    exceeded. `Advisory`: the decision is advice only. `PlacementFollowed`: pods got the planned
    places."""


@declaration()
class VariantAutoscaling:
    """One way to run a model that is scaled jointly with the model's other variants."""

    spec: VariantAutoscalingSpec
    """The desired state of the variant: its model, its scale target and its service level."""

    status: Maybe[VariantAutoscalingStatus] = UNSET
    """The observed state of the variant, and the last decision about it. Written by the controller."""
