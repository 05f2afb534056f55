"""The state of a request in an engine."""

from __future__ import annotations

from dataclasses import dataclass

from controller.simulation.request import Completion, Request


@dataclass(slots=True, eq=False)
class Sequence:
    """The mutable state of a request while one engine processes it.

    While a sequence decodes, it does not change in each iteration: its tokens follow from `decode_iteration`,
    the engine's iteration count when decoding began.
    """

    request: Request
    submitted_us: int
    scheduled_us: int | None = None
    first_token_us: int | None = None
    last_token_us: int = 0
    generated_tokens: int = 0
    uncomputed_tokens: int = 0
    decode_iteration: int | None = None

    @property
    def context_tokens(self) -> int:
        """Tokens that a prefill must compute: the prompt and the tokens generated so far."""
        return self.request.prompt_tokens + self.generated_tokens

    @property
    def last_iteration(self) -> int:
        """The iteration that yields the last token; only while decoding."""
        assert self.decode_iteration is not None
        return self.decode_iteration + self.request.output_tokens - self.generated_tokens - 1

    def cached_tokens(self, iteration: int) -> int:
        """Return the tokens in the KV cache before `iteration`; the newest token is added by the next one."""
        if self.decode_iteration is None:
            return self.context_tokens
        return self.context_tokens - 1 + iteration - self.decode_iteration

    def completion(self, *, finish_us: int) -> Completion:
        """Return the completion of this sequence, which must have all of its tokens."""
        assert self.first_token_us is not None
        return Completion(
            request=self.request,
            submitted_us=self.submitted_us,
            first_token_us=self.first_token_us,
            finish_us=finish_us,
        )
