"""The fields of a scenario file, with their constraints; `scenario_file` builds a scenario from them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import DnsLabel
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, Marker, Range
from controller.simulation.router import RoutingPolicy

_NOTHING_ELSE: Final = Marker((("additionalProperties", False),))
"""Rejects unknown fields inside lists, too."""

Seconds = Annotated[float, Range(0, 366 * 86400)]
"""A duration in seconds."""

Milliseconds = Annotated[float, Range(0, 10**6)]
"""A short duration in milliseconds."""

Target = Annotated[float, Range(1, 10**6)]
"""A latency target in milliseconds."""

Rate = Annotated[float, Range(0, 10**5)]
"""Requests per second."""

Name = Annotated[str, Length(1, 253)]
"""A name."""

Replicas = Annotated[int, Range(0, 10**4)]
"""A number of replicas."""


@declaration()
class CurveFile:
    """A request rate over time, with Poisson arrivals."""

    shape: Literal["constant", "step", "spike", "ramp", "sine"] = "constant"
    """The shape. constant: `high`. step: `low`, then `high`. spike: `high` for `lengthSeconds`, every
    `periodSeconds`. ramp: from `low` to `high` within `lengthSeconds`. sine: between both every
    `periodSeconds`, starting at `low`.
    """

    high: Rate
    """The maximum request rate, in requests per second."""

    low: Rate = 0.0
    """The minimum request rate, in requests per second."""

    at_seconds: Seconds = 0.0
    """When the step, the first spike, the ramp or the first period starts."""

    length_seconds: Seconds = 0.0
    """The duration of a spike or of the ramp."""

    period_seconds: Seconds = 0.0
    """The time from one spike or wave to the next; 0 for a single spike. A day is 86400."""

    noise: Annotated[float, Range(0, 1)] = 0.0
    """The deviation of the rate from the curve, as a share of it (one standard deviation)."""


@declaration()
class WorkloadFile:
    """The requests of a model: a recorded trace, or arrivals along a curve with lengths from a trace."""

    trace: Name = "azure-llm-2023-conv"
    """The trace: the name of a shipped one, or a file next to the scenario: CSV with the columns TIMESTAMP,
    ContextTokens and GeneratedTokens, or JSON lines with timestamp, input_length and output_length.
    """

    copies: Annotated[int, Range(1, 1000)] = 1
    """How often each request of the trace is sent."""

    jitter_seconds: Seconds = 2.0
    """The maximum delay of a copied request after the original."""

    from_seconds: Seconds = 0.0
    """The position in the trace at which to start."""

    curve: Maybe[Annotated[CurveFile, _NOTHING_ELSE]] = UNSET
    """If set, arrivals are drawn along this curve, and the trace provides only their lengths."""


@declaration()
class ModelFile:
    """A model."""

    id: Name
    """The identifier of the model in requests."""

    workload: Annotated[WorkloadFile, _NOTHING_ELSE] = WorkloadFile()
    """The requests of the model."""

    ttft_milliseconds: Maybe[Target] = UNSET
    """The target for the time to first token of a request."""

    itl_milliseconds: Maybe[Target] = UNSET
    """The target for the mean time per further token of a request."""

    priority: Annotated[int, Range(1, 100)] = 10
    """The priority under shortage, from 1 (first) to 100 (last)."""


@declaration()
class ProfileFile:
    """The performance of one engine of a replica.

    An iteration with n sequences takes alpha + beta x n ms, and one with prompts an additional gamma + delta
    x tokens.
    """

    alpha: Milliseconds
    """The fixed time of an iteration, in ms."""

    beta: Milliseconds
    """The time per sequence, in ms."""

    gamma: Milliseconds = 0.0
    """The fixed time of computing prompts, in ms."""

    delta: Milliseconds
    """The time per prompt token, in ms."""

    kv_tokens: Annotated[int, Range(16, 10**9)]
    """The capacity of the KV cache in tokens."""

    max_num_seqs: Annotated[int, Range(1, 10**5)] = 256
    """The maximum number of sequences in a batch."""

    max_num_batched_tokens: Annotated[int, Range(1, 10**6)] = 8192
    """The maximum number of tokens in an iteration. Longer prompts are computed in chunks."""

    prefix_hit_share: Annotated[float, Range(0, 0.95)] = 0.0
    """The mean share of a prompt's tokens that is found in the prefix cache, and not computed."""

    accepted_tokens_per_step: Annotated[float, Range(1, 100)] = 1.0
    """The mean number of tokens that a sequence gains per iteration: above 1 with speculative decoding."""

    ranks: Annotated[int, Range(1, 256)] = 1
    """The number of data-parallel engines of a replica, each with its own queue, batch and KV cache."""


@declaration()
class VariantFile:
    """One way to run a model."""

    name: DnsLabel
    """The name of the variant, and of its VariantAutoscaling, Deployment and HorizontalPodAutoscaler."""

    model: Maybe[Name] = UNSET
    """The model that it serves; may be omitted if there is only one."""

    accelerator: Name
    """The accelerator type, such as H100."""

    accelerators_per_replica: Annotated[int, Range(1, 1024)] = 1
    """The number of accelerators per replica, all on one node."""

    price_per_hour: Annotated[float, Range(0, 10**9)]
    """The price of one replica per hour."""

    profile: Annotated[ProfileFile, _NOTHING_ELSE]
    """The performance of its engines."""

    role: Literal["", "prefill", "decode"] = ""
    """The role of its engines, if the model's engines serve requests in pairs: `prefill` computes prompts,
    `decode` generates answers.
    """

    states_profile: bool = False
    """Whether its VariantAutoscaling declares the profile to Stowplan."""

    start_up_seconds: Seconds = 120.0
    """The mean time from a pod's binding to a node to its first request."""

    start_up_jitter_seconds: Seconds = 0.0
    """The maximum deviation of a start from the mean, in both directions; at most the start-up time."""

    initial_replicas: Replicas = 1
    """The number of replicas at the beginning."""

    min_replicas: Replicas = 0
    """The minReplicas of its HorizontalPodAutoscaler."""

    max_replicas: Annotated[int, Range(1, 10**4)] = 100
    """The maxReplicas of its HorizontalPodAutoscaler."""


@declaration()
class NodesFile:
    """A group of identical nodes."""

    accelerator: Name
    """The accelerator type, such as H100."""

    accelerators: Annotated[int, Range(1, 1024)] = 8
    """The number of accelerators per node."""

    count: Annotated[int, Range(1, 10**5)] = 1
    """The number of nodes."""


@declaration()
class PaceFile:
    """A scaling policy of a HorizontalPodAutoscaler."""

    type: Literal["Pods", "Percent"]
    """The unit of `value`."""

    value: Annotated[int, Range(1, 10**6)]
    """The maximum change within the period."""

    period_seconds: Annotated[int, Range(1, 1800)]
    """The period in seconds."""


@declaration()
class RulesFile:
    """The rules of a HorizontalPodAutoscaler for one direction, as in Kubernetes."""

    stabilization_window_seconds: Maybe[Annotated[int, Range(0, 3600)]] = UNSET
    """How long a recommendation counts. Defaults to 0 for up and 300 for down."""

    select_policy: Literal["Max", "Min", "Disabled"] = "Max"
    """Which scaling policy applies."""

    tolerance: Maybe[Annotated[float, Range(0, 1)]] = UNSET
    """The relative deviation from its target up to which a metric changes nothing. Defaults to 0.1. Decisions
    on replicas are followed without tolerance.
    """

    policies: Annotated[tuple[Annotated[PaceFile, _NOTHING_ELSE], ...], Items(maximum=16)] = ()
    """The scaling policies. If empty, those of Kubernetes apply."""


@declaration()
class BehaviorFile:
    """The `spec.behavior` of all HorizontalPodAutoscalers."""

    scale_up: RulesFile = RulesFile()
    """The rules for scaling up."""

    scale_down: RulesFile = RulesFile()
    """The rules for scaling down."""


@declaration()
class RouterFile:
    """How requests are distributed over the replicas of a model."""

    policy: RoutingPolicy = "shortest-queue"
    """The replica that gets a request: the one with the shortest queue and then the emptiest cache, any one,
    or the next one.
    """

    stale_seconds: Annotated[float, Range(0, 3600)] = 0.0
    """For shortest-queue: how old its information about queues and caches can become."""


@declaration()
class ScenarioFile:
    """The scenario that `stowplan simulate` runs."""

    name: Name = "scenario"
    """The name of the scenario."""

    start: Literal["warm", "cold"] = "warm"
    """warm: the first ten minutes are additionally played ahead, and not scored. cold: everything is scored.
    """

    duration_seconds: Annotated[float, Range(15, 7 * 86400)] = 3600.0
    """The duration that is simulated and scored."""

    seed: Annotated[int, Range(0, 10**9)] = 1
    """The random seed. Equal seeds give equal outcomes."""

    models: Annotated[tuple[Annotated[ModelFile, _NOTHING_ELSE], ...], Items(1, 1000)]
    """The models that receive requests."""

    variants: Annotated[tuple[Annotated[VariantFile, _NOTHING_ELSE], ...], Items(1, 5000)]
    """The variants that serve them."""

    nodes: Annotated[tuple[Annotated[NodesFile, _NOTHING_ELSE], ...], Items(1, 1000)]
    """The nodes of the cluster."""

    behavior: BehaviorFile = BehaviorFile()
    """The behavior of HorizontalPodAutoscalers."""

    router: RouterFile = RouterFile()
    """The router in front of the replicas."""

    grace_seconds: Seconds = 30.0
    """How long a deleted pod may finish its requests."""

    patience_seconds: Seconds = 60.0
    """How long clients wait for a first token before they give up; 0 if they never do."""

    policies: Annotated[tuple[Name, ...], Items(1, 64)] = ("stowplan",)
    """The policies to simulate, one after the other, unless --policy is given."""
