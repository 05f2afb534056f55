"""The inputs of sizing: engine reports, facts about variants, and settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.identity import Key

Histogram = tuple[tuple[float, ...], tuple[float, ...]]
"""Upper bounds of buckets, ascending with an infinite last one, and the cumulative requests per bucket."""

NO_HISTOGRAM: Final[Histogram] = ((), ())
"""The value if a histogram is unknown."""

DEFAULT_START_SECONDS = 120.0
"""Time from a pod's creation until it is ready, before any start was observed."""

ATTAINMENT: Final = 0.95
"""Promised share of requests within their targets, unless a service class states another one."""

LEAST_ATTAINMENT: Final = 0.5
MOST_ATTAINMENT: Final = 0.999
"""Range of that share: fewer requests than one in a thousand are too few to be measured."""

MAX_NUM_SEQS = 256
"""vLLM's default maximum batch, in sequences."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthCounts:
    """Counts from which the lengths of requests follow; those of several intervals can be added."""

    begun: float
    """Requests whose prompt tokens were counted."""

    prompt_tokens: float
    """Prompt tokens of these requests."""

    examined_prompt_tokens: float
    """Prompt tokens of requests whose computed ones are known, which can be others than those that began."""

    computed_prompt_tokens: float
    """Those of them that were not found in a cache."""

    generation_tokens: float
    finished: float
    """Requests that the engine counted as finished; vLLM does not count those that clients aborted."""

    ended: float
    """Requests whose last token was counted, also those that clients aborted. It can be negative for a short
    time, because engines with a prompt in progress count it among the running requests.
    """

    prompt_lengths: Histogram = NO_HISTOGRAM
    """Finished requests by prompt length, in tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineInterval(LengthCounts):
    """What one engine counted between two responses."""

    seconds: float
    """Time between the two responses, or since a new engine's start; greater than 0."""

    first_tokens: float
    """Requests that got their first token."""

    first_token_seconds: float
    """Sum of their times until then, in seconds."""

    waiting_change: float
    """Growth of the queue in requests; negative when it shrank."""

    inter_token_seconds: float
    """Sum of the times between two tokens of a request, in seconds."""

    inter_tokens: float
    """Tokens that came after such times: several with each, if a speculative step had several accepted."""

    steps: float = 0.0
    """Steps of the engine that yielded tokens; 0 if it does not report them."""

    first_token_times: Histogram = NO_HISTOGRAM
    """Requests that got their first token, by the time until then, in seconds."""

    token_times: Histogram = NO_HISTOGRAM
    """Finished requests by their mean time between tokens, in seconds."""

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time until the first token; infinite if no request got one."""
        return self.first_token_seconds / self.first_tokens if self.first_tokens else math.inf

    @property
    def arrivals(self) -> float:
        """Arrived requests that clients did not give up: those that began, plus the growth of the queue."""
        return max(0.0, self.first_tokens + self.waiting_change)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineReport:
    """The latest response of one replica's engine."""

    age_seconds: float
    waiting: int
    running: int
    kv_tokens: int | None
    """Size of the KV cache in tokens; None if the engine does not report it."""

    engines: int = 1
    """Number of engines of the replica, each with a batch of its own."""

    interval: EngineInterval | None = None
    """None if there is no earlier response, or no new one since the last cycle."""


Reports = Mapping[Key, EngineReport]
"""Reports by (namespace, pod)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepParameters:
    """Parameters of an engine's step time: alpha + beta * sequences + delta * prompt tokens, in ms."""

    alpha_ms: float
    beta_ms: float
    delta_ms: float
    gamma_ms: float = 0.0
    """Additional time per prompt, whatever its length; only declared profiles have it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Declared performance of a variant. Source: `variantProfile` of the legacy shape."""

    parameters: StepParameters
    max_batch_size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What the catalog says about a variant whose engines were never seen. It is not a measurement."""

    parameters: StepParameters
    kv_tokens: int
    """Tokens that fit into the KV cache of one engine; 0 if the weights do not fit."""

    basis: str
    """What it follows from, such as `Llama-3.1-8B with 16-bit weights on H100`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnedProfile:
    """Observed performance of a variant's engines, as kept in its status."""

    parameters: StepParameters
    samples: float
    """Weight: the number of intervals from which it was learned."""

    kv_tokens: int | None = None
    utilization: float | None = None
    """Share of its full throughput that was planned for, so that the promised share of requests is within the
    targets.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Targets:
    """Latency targets of a service class, for each request; None without a target.

    Raises ValueError for an attainment outside its range.
    """

    ttft_seconds: float | None = None
    itl_seconds: float | None = None
    """Target of a request's mean time between tokens."""

    attainment: float = ATTAINMENT
    """Promised share of the requests that are within both targets."""

    def __post_init__(self) -> None:
        if not LEAST_ATTAINMENT <= self.attainment <= MOST_ATTAINMENT:
            raise ValueError(
                f"attainment: must be from {LEAST_ATTAINMENT} to {MOST_ATTAINMENT}, was {self.attainment}"
            )


NO_TARGETS: Final = Targets()


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantFacts:
    """Data about a variant that sizing needs in addition to that of planning."""

    targets: Targets = NO_TARGETS
    computes_prompts: bool = True
    """Whether its engines compute prompts, and do not get their KV cache from other pods."""

    profile: Profile | None = None
    estimate: Estimate | None = None
    """What the catalog says; None if it does not know the model or the accelerator."""

    learned: LearnedProfile | None = None
    """Performance from the status, where learning continues after a restart."""

    engines: int = 1
    """Engines of a replica by its arguments, which count until one has reported."""

    max_num_seqs: int = MAX_NUM_SEQS
    """Maximum sequences of one engine's batch."""

    start_seconds: tuple[float, ...] = ()
    """Time from creation until ready, of each pod that is ready."""

    known_start_seconds: float | None = None
    """Start-up time from the status, observed earlier."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizingSettings:
    """Settings of sizing. Raises ValueError naming those that are out of range."""

    interval_seconds: float = 15.0
    """Time between two cycles."""

    hold_seconds: float = 300.0
    """Time for which capacity that was required is kept."""

    history_seconds: float = 600.0
    """Length of the history for the forecast and the lengths."""

    fresh_seconds: float = 60.0
    """Maximum age of a report for decisions in both directions."""

    held_seconds: float = 300.0
    """Maximum age of a report that counts, and how long a silent engine blocks scaling down."""

    quorum: float = 0.5
    """Share of the ready replicas that must report for a decision without the others."""

    tries_unknown_variants: bool = False
    """Whether one replica of a variant that never ran may be started based on an estimate alone."""

    def __post_init__(self) -> None:
        """Reject shares outside 0..1 and invalid durations."""
        wrong = []
        if not 0 < self.quorum <= 1:
            wrong.append(f"quorum: must be greater than 0 and at most 1, was {self.quorum}")
        for name in ("interval", "hold", "history", "fresh", "held"):
            value = getattr(self, f"{name}_seconds")
            if not 0 < value < math.inf:
                wrong.append(f"{name}_seconds: must be greater than 0 and finite, was {value}")
        if self.held_seconds < self.fresh_seconds:
            limit = f"must be at least fresh_seconds ({self.fresh_seconds})"
            wrong.append(f"held_seconds: {limit}, was {self.held_seconds}")
        if wrong:
            raise ValueError("; ".join(wrong))


DEFAULT_SIZING: Final = SizingSettings()
"""The default settings."""
