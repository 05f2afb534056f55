"""Performance of the engines of one replica: one model on one accelerator type."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_NUM_BATCHED_TOKENS = 8192
"""vLLM's default maximum of tokens per iteration."""

PREFILL = "prefill"
DECODE = "decode"
"""Roles of engines that serve requests in pairs."""

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineProfile:
    """Costs and limits of an engine; limits are named like vLLM's flags.

    One iteration that decodes n sequences takes `alpha_ms + beta_ms * n`; if it also computes prompt tokens,
    it takes an additional `gamma_ms + delta_ms * tokens`. These are the four parameters of the legacy
    `variantProfile` (`decodeParms`, `prefillParms`); there, prompt cost is `gamma + delta * tokens * n`,
    because each of n requests in service is also delayed by the prompts of the n - 1 others. Here that delay
    is simulated instead of assumed.

    Real engines follow that line only roughly, and two more fields describe the deviation:
    `context_us_per_token` is added to a decoding iteration for each token of used KV cache blocks, and
    `step_noise` is the maximum relative random deviation of an iteration. With either, iterations are
    computed one by one, which takes several times as long.

    - `prefix_hit_share` is the mean share of a prompt's tokens that is found in the prefix cache and not
      computed. It differs by request, evenly up to twice the share or down from 1. Tokens that are found
      still take blocks: a prefix is not shared within the KV cache.
    - `accepted_tokens_per_step` is the mean number of tokens that a decoding sequence gains per iteration
      with speculative decoding, the token of the model itself included. The iteration times are those with
      speculation.
    - `role` is `prefill` for an engine that computes prompts and first tokens only, and `decode` for one that
      gets the KV cache of its prompts from such an engine. Empty for an engine that does both.
    - `ranks` is the number of engines with data parallelism. Each has its own queue, batch and KV cache, to
      which all other fields apply.

    Raises ValueError, naming every field that is out of range.
    """

    model_id: str
    alpha_ms: float
    beta_ms: float
    gamma_ms: float
    delta_ms: float
    num_gpu_blocks: int
    block_size: int = 16
    max_num_seqs: int = 256
    max_num_batched_tokens: int = MAX_NUM_BATCHED_TOKENS
    context_us_per_token: float = 0.0
    step_noise: float = 0.0
    prefix_hit_share: float = 0.0
    accepted_tokens_per_step: float = 1.0
    ranks: int = 1
    role: str = ""

    def __post_init__(self) -> None:
        hits, positive = self.prefix_hit_share, ("alpha_ms", "num_gpu_blocks", "block_size", "max_num_seqs")
        natural = ("beta_ms", "gamma_ms", "delta_ms", "context_us_per_token", "step_noise")
        checks = [
            *((getattr(self, name) > 0, f"{name} must be greater than 0") for name in positive),
            *((getattr(self, name) >= 0, f"{name} must be greater than or equal to 0") for name in natural),
            (self.step_noise < 1, "step_noise must be less than 1"),
            (0 <= hits < 1, "prefix_hit_share must be greater than or equal to 0 and less than 1"),
            *(
                (getattr(self, name) >= 1, f"{name} must be greater than or equal to 1")
                for name in ("accepted_tokens_per_step", "ranks")
            ),
            (
                self.max_num_batched_tokens >= self.max_num_seqs,
                "max_num_batched_tokens must be greater than or equal to max_num_seqs",
            ),
            (bool(self.model_id), "model_id must not be empty"),
            (self.role in ("", PREFILL, DECODE), f"role must be {PREFILL}, {DECODE} or empty"),
        ]
        if wrong := [text for is_valid, text in checks if not is_valid]:
            raise ValueError("; ".join(wrong))

    @property
    def kv_tokens(self) -> int:
        """Capacity of the KV cache of one engine in tokens."""
        return self.num_gpu_blocks * self.block_size

    @property
    def request_tokens(self) -> int:
        """Maximum of prompt and output tokens together that an empty engine can finish.

        The last token needs no cache, but the last iteration may yield further ones.
        """
        return self.kv_tokens + 2 - math.ceil(self.accepted_tokens_per_step)

    @property
    def is_even(self) -> bool:
        """Whether iterations with equal sequences and without prompts have equal durations."""
        return not self.context_us_per_token and not self.step_noise

    def iteration_us(self, *, decodes: int, prompt_tokens: int, cached_tokens: int = 0) -> int:
        """Return the duration of one iteration without noise, in microseconds, at least 1."""
        decode_ms = self.alpha_ms + self.beta_ms * decodes if decodes else 0.0
        prefill_ms = self.gamma_ms + self.delta_ms * prompt_tokens if prompt_tokens else 0.0
        context_us = self.context_us_per_token * cached_tokens if decodes else 0.0
        return max(1, round((decode_ms + prefill_ms) * 1000 + context_us))

    def found_tokens(self, request_id: int, *, prompt_tokens: int) -> int:
        """Return the tokens of a prompt that are found in the prefix cache: never all of them.

        The shares of consecutive requests are evenly distributed, by multiples of the golden ratio.
        """
        if self.role == DECODE:
            return prompt_tokens - 1
        share = self.prefix_hit_share
        offset = 2 * (request_id * _GOLDEN % 1) - 1
        return min(prompt_tokens - 1, round((share + offset * min(share, 1 - share)) * prompt_tokens))

    def fits(self, *, prompt_tokens: int, output_tokens: int) -> bool:
        """Return whether an empty engine could finish such a request."""
        return prompt_tokens + output_tokens <= self.request_tokens
