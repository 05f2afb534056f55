"""Requests of clients, and their completions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request of a client, with its prompt and output tokens.

    `arrival_us` is when the client sent it; it is unchanged when the request is retried on another engine.
    """

    request_id: int
    arrival_us: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """A request that an engine gave up, and when its client got the first token, if it did."""

    request: Request
    first_token_us: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """A request that got all of its tokens, with its times.

    `submitted_us` is when the engine that finished it received it: later than the arrival if it was held back
    or retried. A retried request keeps the time at which its client got a first token. All times are
    microseconds on the caller's time line.
    """

    request: Request
    submitted_us: int
    first_token_us: int
    finish_us: int

    @property
    def time_to_first_token_seconds(self) -> float:
        """Seconds from arrival to the first token, including waiting and retries."""
        return (self.first_token_us - self.request.arrival_us) / 1e6

    @property
    def latency_seconds(self) -> float:
        """Seconds from arrival to the last token."""
        return (self.finish_us - self.request.arrival_us) / 1e6

    @property
    def inter_token_latency_seconds(self) -> float:
        """Mean seconds between tokens after the first; 0.0 for a single token."""
        gaps = self.request.output_tokens - 1
        return (self.finish_us - self.first_token_us) / gaps / 1e6 if gaps else 0.0
