"""What one engine of one model on one kind of accelerator can do."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NUM_BATCHED_TOKENS = 8192
"""What vLLM computes at most per step when its arguments don't say: tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineProfile:
    """Costs and limits of an engine; limits carry the names of vLLM's own flags.

    One iteration that decodes n sequences takes `alpha_ms + beta_ms * n`; if it also computes prompt tokens
    it takes `gamma_ms + delta_ms * tokens` more. These are the four parameters of the legacy
    `variantProfile` (`decodeParms`, `prefillParms`); there, prompt cost is `gamma + delta * tokens * n`,
    because each of n requests in service is also held up by the prompts of the n - 1 others. Here that
    hold-up happens, instead of being assumed.

    Real engines fit that line only roughly, and two more fields say how: `context_us_per_token` is added to
    an iteration that decodes for each token that the KV cache has room taken for, and `step_noise` is the
    share by which chance makes an iteration shorter or longer at most. With either, iterations are computed
    one by one, which takes several times as long.

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

    def __post_init__(self) -> None:
        wrong = [
            f"{name} must be greater than 0"
            for name in ("alpha_ms", "num_gpu_blocks", "block_size", "max_num_seqs")
            if getattr(self, name) <= 0
        ]
        wrong += [
            f"{name} must be greater than or equal to 0"
            for name in ("beta_ms", "gamma_ms", "delta_ms", "context_us_per_token", "step_noise")
            if getattr(self, name) < 0
        ]
        if self.step_noise >= 1:
            wrong.append("step_noise must be less than 1")
        if self.max_num_batched_tokens < self.max_num_seqs:
            wrong.append("max_num_batched_tokens must be greater than or equal to max_num_seqs")
        if not self.model_id:
            wrong.append("model_id must not be empty")
        if wrong:
            raise ValueError("; ".join(wrong))

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.num_gpu_blocks * self.block_size

    @property
    def is_even(self) -> bool:
        """Whether iterations with the same sequences and no prompt take the same time."""
        return not self.context_us_per_token and not self.step_noise

    def iteration_us(self, *, decodes: int, prompt_tokens: int, cached_tokens: int = 0) -> int:
        """Return the microseconds of one iteration without noise, at least 1."""
        decode_ms = self.alpha_ms + self.beta_ms * decodes if decodes else 0.0
        prefill_ms = self.gamma_ms + self.delta_ms * prompt_tokens if prompt_tokens else 0.0
        context_us = self.context_us_per_token * cached_tokens if decodes else 0.0
        return max(1, round((decode_ms + prefill_ms) * 1000 + context_us))

    def fits(self, *, prompt_tokens: int, output_tokens: int) -> bool:
        """Tell whether an empty engine could finish such a request; its last token needs no cache."""
        return prompt_tokens + output_tokens - 1 <= self.kv_tokens
