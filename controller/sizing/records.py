"""What sizing reads: answers of engines, facts of variants, and the numbers a person may choose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

Key = tuple[str, str]
"""(namespace, name)."""

PromptLengths = tuple[tuple[float, ...], tuple[float, ...]]
"""Upper bounds in tokens, ascending and the last one infinite; and the requests up to each of them."""

NO_LENGTHS: Final[PromptLengths] = ((), ())
"""Nobody tells how long prompts are."""

DEFAULT_START_SECONDS = 120.0
"""From a pod's creation until it is ready, before any start was seen."""

MAX_NUM_SEQS = 256
"""Sequences that vLLM batches at most when its arguments don't say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineInterval:
    """What one engine counted between two of its answers. All amounts are finite and at least 0."""

    seconds: float
    """Time between the two answers, or since the engine started where it is new; greater than 0."""

    first_tokens: float
    """Requests that got their first token."""

    waiting_change: float
    """Growth of the queue in requests; negative when it shrank."""

    prompt_tokens: float
    """Prompt tokens of those requests."""

    computed_prompt_tokens: float
    """The same without what the prefix cache had."""

    generation_tokens: float
    finished: float
    """Requests that got their last token."""

    inter_token_seconds: float
    """Sum of the times between two tokens of a request."""

    inter_tokens: float
    """How many such times."""

    prompt_lengths: PromptLengths = NO_LENGTHS
    """Requests that finished, by prompt length."""

    restarted: bool = False
    """Whether the engine started anew within the interval: what it counts may be retries."""

    @property
    def arrivals(self) -> float:
        """Requests that came: those that began, and those that the queue grew by."""
        return max(0.0, self.first_tokens + self.waiting_change)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineReport:
    """The newest answer of one replica's engine."""

    age_seconds: float
    waiting: int
    running: int
    kv_tokens: int | None
    """Size of the KV cache; None where the engine does not tell."""

    interval: EngineInterval | None = None
    """None where there is no answer before, or none that is newer than in the last cycle."""


Reports = Mapping[Key, EngineReport]
"""By namespace and pod."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepParameters:
    """How long one step of an engine takes: alpha + beta * sequences + delta * prompt tokens, in ms."""

    alpha_ms: float
    beta_ms: float
    delta_ms: float
    gamma_ms: float = 0.0
    """On top for a prompt, whatever its length; only declared profiles have it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Performance that somebody declared for a variant. Source: `variantProfile` of the legacy shape."""

    parameters: StepParameters
    max_batch_size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """Performance that the engines of a variant showed, as its status keeps it."""

    parameters: StepParameters
    samples: float
    """Weight: how many intervals it was learned from."""

    kv_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Targets:
    """Latency targets of a service class; None for no target."""

    ttft_seconds: float | None = None
    itl_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantFacts:
    """What sizing needs of a variant beyond what planning reads."""

    targets: Targets = Targets()
    profile: Profile | None = None
    learned: Learned | None = None
    """What the status says; where learning goes on after a restart."""

    max_num_seqs: int = MAX_NUM_SEQS
    start_seconds: tuple[float, ...] = ()
    """From creation until ready, of each pod that is ready now."""

    known_start_seconds: float | None = None
    """What the status says of starts that were seen before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizingSettings:
    """The numbers that a person may choose. Raises ValueError naming those that are out of range."""

    interval_seconds: float = 15.0
    """Time between two cycles."""

    target_utilization: float = 0.85
    """Share of the capacity that the forecast may take, and of the batch that is counted on."""

    itl_share: float = 0.8
    """Share of the ITL target that the mean step may take: single requests see more than the mean."""

    wait_share: float = 0.5
    """Share of what TTFT leaves beside the own prefill that the mean wait may take."""

    forecast_confidence: float = 0.95
    """Probability with which the load stays below the forecast's upper bound."""

    drain_seconds: float = 60.0
    """Time within which a backlog is to be worked off once what was ordered is ready."""

    history_seconds: float = 300.0
    """How far back the trend and the lengths look."""

    fresh_seconds: float = 60.0
    """Age up to which an answer is acted on in both directions."""

    held_seconds: float = 300.0
    """Age up to which an answer counts, and how long a silent engine blocks scaling down."""

    quorum: float = 0.5
    """Share of the ready replicas that must answer for a decision without the others."""

    tries_unknown_variants: bool = False
    """Whether one replica of a variant that never ran may be started on an estimate alone."""

    def __post_init__(self) -> None:
        """Refuse shares beyond 0..1 and durations that are none."""
        shares = {
            "target_utilization": self.target_utilization,
            "itl_share": self.itl_share,
            "wait_share": self.wait_share,
            "quorum": self.quorum,
        }
        wrong = [
            f"{name}: must be greater than 0 and at most 1, was {value}"
            for name, value in shares.items()
            if not 0 < value <= 1
        ]
        if not 0.5 <= self.forecast_confidence < 1:  # noqa: PLR2004 (below one half it is no upper bound)
            wrong.append(
                f"forecast_confidence: must be at least 0.5 and less than 1, was {self.forecast_confidence}"
            )
        durations = {
            "interval_seconds": self.interval_seconds,
            "drain_seconds": self.drain_seconds,
            "history_seconds": self.history_seconds,
            "fresh_seconds": self.fresh_seconds,
            "held_seconds": self.held_seconds,
        }
        wrong += [
            f"{name}: must be greater than 0 and finite, was {value}"
            for name, value in durations.items()
            if not 0 < value < math.inf
        ]
        if self.held_seconds < self.fresh_seconds:
            wrong.append(
                f"held_seconds: must be at least fresh_seconds ({self.fresh_seconds}), "
                f"was {self.held_seconds}"
            )
        if wrong:
            raise ValueError("; ".join(wrong))

    @property
    def deviations(self) -> float:
        """Standard deviations above the trend at which the upper bound lies."""
        return NormalDist().inv_cdf(self.forecast_confidence)


DEFAULT_SIZING: Final = SizingSettings()
"""What counts where nobody chose anything."""
