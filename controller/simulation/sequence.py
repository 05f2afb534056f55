"""A request inside an engine: how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from controller.simulation.request import Completion, Request


@dataclass(slots=True, eq=False)
class Sequence:
    """The mutable half of a request while one engine works on it.

    While a sequence decodes, nothing in it changes per iteration: its tokens follow from
    `decode_iteration`, the engine's count of iterations when it began.
    """

    request: Request
    submitted_us: int
    scheduled_us: int | None = None
    first_token_us: int | None = None
    last_token_us: int = 0
    generated_tokens: int = 0
    uncomputed_tokens: int = 0
    decode_iteration: int | None = None
    preemptions: int = 0

    @property
    def context_tokens(self) -> int:
        """Tokens whose keys and values a prefill must compute: the prompt and what was generated so far."""
        return self.request.prompt_tokens + self.generated_tokens

    @property
    def last_iteration(self) -> int:
        """The iteration in which the last token comes; only while decoding."""
        assert self.decode_iteration is not None
        return self.decode_iteration + self.request.output_tokens - self.generated_tokens - 1

    def cached_tokens(self, iteration: int) -> int:
        """Count the tokens in the KV cache before `iteration`; the newest token comes with the next."""
        if self.decode_iteration is None:
            return self.context_tokens
        return self.context_tokens - 1 + iteration - self.decode_iteration

    def completion(self, *, finish_us: int) -> Completion:
        """Return the record of this sequence, which has all its tokens."""
        assert self.first_token_us is not None
        return Completion(
            request=self.request,
            submitted_us=self.submitted_us,
            first_token_us=self.first_token_us,
            finish_us=finish_us,
            preemptions=self.preemptions,
        )
