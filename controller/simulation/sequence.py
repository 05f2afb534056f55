"""The state of a request in an engine."""

from __future__ import annotations

from dataclasses import dataclass

from controller.simulation.request import Completion, Request


@dataclass(slots=True, eq=False)
class Sequence:
    """The mutable state of a request while one engine processes it.

    While a sequence decodes, it does not change in each iteration: its tokens follow from `decode_clock`, the
    batch's clock of tokens when decoding began. `found_tokens` of the prompt are in the prefix cache.
    """

    request: Request
    submitted_us: int
    found_tokens: int = 0
    scheduled_us: int | None = None
    first_token_us: int | None = None
    last_token_us: int = 0
    generated_tokens: int = 0
    uncomputed_tokens: int = 0
    decode_clock: int | None = None

    @property
    def context_tokens(self) -> int:
        """Tokens that a prefill puts into the KV cache: the prompt and the tokens generated so far."""
        return self.request.prompt_tokens + self.generated_tokens

    @property
    def last_clock(self) -> int:
        """The tick that yields the last token; only while decoding."""
        assert self.decode_clock is not None
        return self.decode_clock + self.request.output_tokens - self.generated_tokens - 1

    def cached_tokens(self, clock: int) -> int:
        """Return the tokens in the KV cache before `clock`; the newest token is added by the next tick."""
        if self.decode_clock is None:
            return self.context_tokens
        return self.context_tokens - 1 + clock - self.decode_clock

    def completion(self, *, finish_us: int) -> Completion:
        """Return the completion of this sequence, which must have all of its tokens."""
        assert self.first_token_us is not None
        return Completion(
            request=self.request,
            submitted_us=self.submitted_us,
            first_token_us=self.first_token_us,
            finish_us=finish_us,
        )
