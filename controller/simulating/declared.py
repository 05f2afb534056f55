"""The scenario file of `stowplan simulate`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.names import DnsLabel
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, Marker, Range

_NOTHING_ELSE: Final = Marker((("additionalProperties", False),))
"""Refuses misspelled fields inside lists, too."""

Seconds = Annotated[float, Range(0, 366 * 86400)]
"""A time span."""

Milliseconds = Annotated[float, Range(0, 10**6)]
"""A short time span."""

Target = Annotated[float, Range(1, 10**6)]
"""A latency in milliseconds that is to be kept."""

Rate = Annotated[float, Range(0, 10**5)]
"""Requests per second."""

Name = Annotated[str, Length(1, 253)]
"""What something is called."""

Replicas = Annotated[int, Range(0, 10**4)]
"""A number of replicas."""


@declaration()
class CurveFile:
    """A rate of requests over time, with Poisson arrivals."""

    shape: Literal["constant", "step", "spike", "ramp", "sine"] = "constant"
    """constant: `high`. step: `low`, then `high`. spike: `high` for `lengthSeconds`, every `periodSeconds`.
    ramp: from `low` to `high` within `lengthSeconds`. sine: between both every `periodSeconds`, beginning at
    `low`."""

    high: Rate
    """The most requests per second."""

    low: Rate = 0.0
    """The fewest."""

    at_seconds: Seconds = 0.0
    """When the step, the first spike, the ramp or the first period begins."""

    length_seconds: Seconds = 0.0
    """How long a spike or the ramp lasts."""

    period_seconds: Seconds = 0.0
    """From one spike or wave to the next; 0 for a single spike. A day is 86400."""

    noise: Annotated[float, Range(0, 1)] = 0.0
    """How far the rate wanders off the curve, as a share of it (one standard deviation)."""


@declaration()
class WorkloadFile:
    """The requests of a model: a recorded trace, or arrivals along a curve with lengths from a trace."""

    trace: Name = "azure-llm-2023-conv"
    """A trace that is shipped, or a file beside the scenario: CSV with the columns TIMESTAMP, ContextTokens
    and GeneratedTokens, or JSON lines with timestamp, input_length and output_length."""

    copies: Annotated[int, Range(1, 1000)] = 1
    """How often each request of the trace is sent."""

    jitter_seconds: Seconds = 2.0
    """How much later, at most, a copy is sent than the request that it copies."""

    from_seconds: Seconds = 0.0
    """Where in the trace to begin."""

    curve: Maybe[Annotated[CurveFile, _NOTHING_ELSE]] = UNSET
    """Draws arrivals instead of playing those of the trace, which then gives their lengths only."""


@declaration()
class ModelFile:
    """A model."""

    id: Name
    """Its identifier, as clients say it."""

    workload: Annotated[WorkloadFile, _NOTHING_ELSE] = WorkloadFile()
    """What it is asked for."""

    ttft_milliseconds: Maybe[Target] = UNSET
    """What a request may wait for its first token."""

    itl_milliseconds: Maybe[Target] = UNSET
    """What a request may take for each further token, on average."""

    priority: Annotated[int, Range(1, 100)] = 10
    """1 goes first under shortage, 100 last."""


@declaration()
class ProfileFile:
    """What one engine can do.

    An iteration with n sequences takes alpha + beta x n ms, and with prompts gamma + delta x tokens more.
    """

    alpha: Milliseconds
    """Fixed part of an iteration, in ms."""

    beta: Milliseconds
    """For each sequence, in ms."""

    gamma: Milliseconds = 0.0
    """Fixed part of computing prompts, in ms."""

    delta: Milliseconds
    """For each prompt token, in ms."""

    kv_tokens: Annotated[int, Range(16, 10**9)]
    """Tokens that the KV cache holds."""

    max_num_seqs: Annotated[int, Range(1, 10**5)] = 256
    """Most sequences in a batch."""

    max_num_batched_tokens: Annotated[int, Range(1, 10**6)] = 8192
    """Most tokens in an iteration."""


@declaration()
class VariantFile:
    """One way to run a model."""

    name: DnsLabel
    """Its name, and that of its VariantAutoscaling, Deployment and HorizontalPodAutoscaler."""

    model: Maybe[Name] = UNSET
    """The model that it runs; may be left out where there is one model only."""

    accelerator: Name
    """Type, such as H100."""

    accelerators_per_replica: Annotated[int, Range(1, 1024)] = 1
    """How many of them a replica holds, all on one node."""

    price_per_hour: Annotated[float, Range(0, 10**9)]
    """Of one replica."""

    profile: Annotated[ProfileFile, _NOTHING_ELSE]
    """What its engines can do."""

    states_profile: bool = False
    """Whether its VariantAutoscaling tells Stowplan the profile."""

    start_up_seconds: Seconds = 120.0
    """From a place on a node to the first request."""

    start_up_jitter_seconds: Seconds = 0.0
    """The most that chance adds to it."""

    initial_replicas: Replicas = 1
    """What runs at the beginning."""

    min_replicas: Replicas = 0
    """Of its HorizontalPodAutoscaler."""

    max_replicas: Annotated[int, Range(1, 10**4)] = 100
    """Of its HorizontalPodAutoscaler."""


@declaration()
class NodesFile:
    """Nodes that are alike."""

    accelerator: Name
    """Type, such as H100."""

    accelerators: Annotated[int, Range(1, 1024)] = 8
    """How many of them a node has."""

    count: Annotated[int, Range(1, 10**5)] = 1
    """How many nodes there are."""


@declaration()
class PaceFile:
    """A policy of a HorizontalPodAutoscaler."""

    type: Literal["Pods", "Percent"]
    """What `value` counts."""

    value: Annotated[int, Range(1, 10**6)]
    """By how much to change at most."""

    period_seconds: Annotated[int, Range(1, 1800)]
    """Within which time."""


@declaration()
class RulesFile:
    """The rules of a HorizontalPodAutoscaler for one direction, in Kubernetes' words."""

    stabilization_window_seconds: Maybe[Annotated[int, Range(0, 3600)]] = UNSET
    """For how long a recommendation counts; 0 for up and 300 for down if it is left out."""

    select_policy: Literal["Max", "Min", "Disabled"] = "Max"
    """Which policy counts."""

    tolerance: Maybe[Annotated[float, Range(0, 1)]] = UNSET
    """How far off its target a metric changes nothing; 0.1 if it is left out. Decisions on replicas are
    followed without any."""

    policies: Annotated[tuple[Annotated[PaceFile, _NOTHING_ELSE], ...], Items(maximum=16)] = ()
    """Empty: Kubernetes' own."""


@declaration()
class BehaviorFile:
    """The `spec.behavior` of all HorizontalPodAutoscalers."""

    scale_up: RulesFile = RulesFile()
    """More replicas."""

    scale_down: RulesFile = RulesFile()
    """Fewer replicas."""


@declaration()
class ScenarioFile:
    """What `stowplan simulate` plays."""

    name: Name = "scenario"
    """What it is called."""

    start: Literal["warm", "cold"] = "warm"
    """warm: the first ten minutes are played once more ahead, and not scored. cold: all is scored."""

    duration_seconds: Annotated[float, Range(15, 7 * 86400)] = 3600.0
    """How long is played and scored."""

    seed: Annotated[int, Range(0, 10**9)] = 1
    """The same seed, the same outcome."""

    models: Annotated[tuple[Annotated[ModelFile, _NOTHING_ELSE], ...], Items(1, 1000)]
    """Who is asked."""

    variants: Annotated[tuple[Annotated[VariantFile, _NOTHING_ELSE], ...], Items(1, 5000)]
    """Who answers."""

    nodes: Annotated[tuple[Annotated[NodesFile, _NOTHING_ELSE], ...], Items(1, 1000)]
    """Where."""

    behavior: BehaviorFile = BehaviorFile()
    """How HorizontalPodAutoscalers go about it."""

    grace_seconds: Seconds = 30.0
    """How long a pod that is deleted may finish what it has."""

    policies: Annotated[tuple[Name, ...], Items(1, 64)] = ("stowplan",)
    """Who decides, one after the other, unless --policy says it."""
