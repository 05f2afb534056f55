"""What an engine keeps of its requests: their state, the running batch, use of the KV cache, and metrics.

All decoding sequences grow together, by as many tokens each, so a clock of tokens is common to them: a
sequence opens a new block every `block_size` ticks, always in the same residue class. Counting sequences per
class makes the growth by a token a single lookup, however many sequences run.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush

from controller.simulation.profile import EngineProfile
from controller.simulation.workload import Request


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletedRequest:
    """A request that got all of its tokens, with its times.

    A retried request keeps the time at which its client got a first token. All times are microseconds on the
    caller's time line.
    """

    request: Request
    first_token_us: int
    finish_us: int

    @property
    def time_to_first_token_seconds(self) -> float:
        """Seconds from arrival to the first token, including waiting and retries."""
        return (self.first_token_us - self.request.arrival_us) / 1e6

    @property
    def inter_token_latency_seconds(self) -> float:
        """Mean seconds between tokens after the first; 0.0 for a single token."""
        gaps = self.request.output_tokens - 1
        return (self.finish_us - self.first_token_us) / gaps / 1e6 if gaps else 0.0


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


class Patience:
    """Sequences by the time at which their clients give up; those with a first token are skipped."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int, Sequence]] = []

    def add(self, sequence: Sequence, end_us: int) -> None:
        """Add a sequence whose client gives up at `end_us`; request IDs are unique."""
        heappush(self._ends, (end_us, sequence.request.request_id, sequence))

    def next_us(self) -> int | None:
        """Return when the next client gives up, or None if no client will."""
        ends = self._ends
        while ends and ends[0][2].first_token_us is not None:
            heappop(ends)
        return ends[0][0] if ends else None

    def pop_ended(self, now_us: int) -> list[Sequence]:
        """Remove and return the sequences whose clients have given up by now."""
        ended = []
        while (end_us := self.next_us()) is not None and end_us <= now_us:
            ended.append(heappop(self._ends)[2])
        return ended


class Batch:
    """Sequences in order of admission, the clock of tokens, and the blocks of the KV cache.

    A sequence is either prefilling or decoding. `clock` counts the tokens that each decoding sequence has
    gained since the engine started: one per iteration, or with speculative decoding as many on average as the
    profile says, rounded such that all iterations together never deviate by a whole token.
    """

    def __init__(self, profile: EngineProfile) -> None:
        self.clock = 0
        self.total_blocks, self.block_size = profile.num_gpu_blocks, profile.block_size
        self.used_blocks = 0
        self._growing = [0] * profile.block_size
        """Decoding sequences by the residue class of the ticks at which they open a block."""

        self.prefilling: list[Sequence] = []
        self.decodes = 0
        # A ratio of integers, so that the clock has no rounding errors however long it runs.
        mean = Fraction(profile.accepted_tokens_per_step).limit_denominator(1000)
        self._tokens, self._per_iterations = mean.as_integer_ratio()
        self._iteration = 0
        self._max_num_seqs = profile.max_num_seqs
        self._sequences: dict[int, Sequence] = {}
        self._finishing: list[tuple[int, int, Sequence]] = []

    def __len__(self) -> int:
        return len(self._sequences)

    def __contains__(self, sequence: Sequence) -> bool:
        return self._sequences.get(sequence.request.request_id) is sequence

    @property
    def free_blocks(self) -> int:
        """Number of unused blocks."""
        return self.total_blocks - self.used_blocks

    def sequences(self) -> list[Sequence]:
        """Return all sequences, in order of admission."""
        return list(self._sequences.values())

    def has_room(self, sequence: Sequence) -> bool:
        """Return whether the sequence may enter now, with its whole context in the cache."""
        blocks = self._blocks(sequence.context_tokens)
        return len(self._sequences) < self._max_num_seqs and blocks <= self.free_blocks

    def clock_after(self, iterations: int) -> int:
        """Return the clock after a number of iterations from now."""
        return (self._iteration + iterations) * self._tokens // self._per_iterations

    def end_iterations(self, iterations: int) -> int:
        """Pass a number of iterations, and return the tokens that each decoding sequence gains."""
        before, self.clock = self.clock, self.clock_after(iterations)
        self._iteration += iterations
        return self.clock - before

    def growth(self, *, after: int = 0, iterations: int = 1) -> int:
        """Return the blocks that `iterations` iterations open, the first of which comes `after` others."""
        begin = self.clock_after(after) if after else self.clock
        ticks, size, growing = self.clock_after(after + iterations) - begin, self.block_size, self._growing
        first = begin % size
        if ticks == 1:
            return growing[first]
        # In each round over all residue classes, every decoding sequence opens one block. The rest are the
        # classes from `first` on, and again from 0 if they go beyond the last one.
        rounds, rest = divmod(ticks, size)
        opened = sum(growing[first : first + rest]) + sum(growing[: max(0, first + rest - size)])
        return rounds * self.decodes + opened

    def grow(self, *, after: int = 0, iterations: int = 1) -> None:
        """Take the blocks that `growth` returns."""
        self.used_blocks += self.growth(after=after, iterations=iterations)

    def admit(self, sequence: Sequence) -> None:
        """Admit the sequence, to be prefilled except for what is found in the prefix cache."""
        self._sequences[sequence.request.request_id] = sequence
        self.used_blocks += self._blocks(sequence.context_tokens)
        sequence.uncomputed_tokens = sequence.context_tokens - sequence.found_tokens
        self.prefilling.append(sequence)

    def start_decoding(self, sequence: Sequence) -> None:
        """Move a sequence to the decoding ones, after its prefill produced a token."""
        self.prefilling.remove(sequence)
        sequence.decode_clock = self.clock
        self.decodes += 1
        self._growing[self._residue(sequence.cached_tokens(self.clock))] += 1
        heappush(self._finishing, (sequence.last_clock, sequence.request.request_id, sequence))

    def remove(self, sequence: Sequence) -> None:
        """Remove the sequence, finished or not, and free its blocks."""
        tokens = sequence.cached_tokens(self.clock)
        if sequence.decode_clock is None:
            self.prefilling.remove(sequence)
        else:
            self._growing[self._residue(tokens)] -= 1
            self.decodes -= 1
        self.used_blocks -= self._blocks(tokens)
        del self._sequences[sequence.request.request_id]

    def preempt(self) -> Sequence:
        """Preempt the sequence admitted last; it keeps its tokens and loses its cache."""
        victim = next(reversed(self._sequences.values()))
        self.remove(victim)
        if victim.decode_clock is not None:
            victim.generated_tokens += self.clock - victim.decode_clock
            victim.decode_clock = None
        return victim

    def safe_iterations(self) -> int:
        """Return a number of iterations for which the cache has room, whatever blocks they open.

        It is 0 if the next one may not fit; some sequence must be decoding.
        """
        # In `block_size` ticks, every decoding sequence opens exactly one block.
        ticks = self.free_blocks // self.decodes * self.block_size
        return ticks * self._per_iterations // self._tokens

    def iterations_to_finish(self) -> int:
        """Return the iterations until a sequence gets its last token; some must be decoding."""
        # The inverse of `clock_after`: the first iteration after which the clock has passed that tick.
        return -(-(self._next_finish() + 1) * self._per_iterations // self._tokens) - self._iteration

    def pop_finished(self) -> list[Sequence]:
        """Remove and return all sequences that have got their last token."""
        finished = []
        while self.decodes and self._next_finish() < self.clock:
            sequence = heappop(self._finishing)[2]
            self.remove(sequence)
            finished.append(sequence)
        return finished

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _residue(self, tokens: int) -> int:
        """Return the residue class of a sequence of `tokens` that gains one at the next tick."""
        return (self.clock - tokens) % self.block_size

    def _next_finish(self) -> int:
        """Return the next tick that yields a last token."""
        # A preempted sequence leaves its heap entry behind; when it decodes again, it ends at a later tick.
        while True:
            last_clock, request_id, sequence = self._finishing[0]
            is_decoding = sequence.decode_clock is not None and request_id in self._sequences
            if is_decoding and sequence.last_clock == last_clock:
                return last_clock
            heappop(self._finishing)


# The bucket bounds are those of vLLM's own histograms, so that queries written for it have the same
# resolution.
TIME_TO_FIRST_TOKEN_SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
"""Bucket bounds of the time to first token."""

INTER_TOKEN_SECONDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
"""Bucket bounds of the time between two tokens, and of its mean over a request."""

REQUEST_SECONDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip
"""Bucket bounds of request latencies and queueing times."""

REQUEST_TOKENS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
)  # fmt: skip
"""Bucket bounds of token counts per request."""

ITERATION_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
"""Bucket bounds of tokens per iteration."""


class Histogram:
    """Counts per bucket, and the sum of all observations."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def observe(self, value: float, times: int = 1) -> None:
        """Record one value, or the same value several times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def cumulative(self) -> list[tuple[str, float]]:
        """Return (upper bound in Prometheus' notation, cumulative count) of each bucket."""
        running, pairs = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            running += count
            pairs.append(("+Inf" if bound == float("inf") else str(float(bound)), float(running)))
        return pairs


@dataclass(slots=True)
class Measures:
    """Counters and histograms of one engine since its start."""

    time_to_first_token_seconds: Histogram = field(
        default_factory=partial(Histogram, TIME_TO_FIRST_TOKEN_SECONDS)
    )
    inter_token_seconds: Histogram = field(default_factory=partial(Histogram, INTER_TOKEN_SECONDS))
    request_token_seconds: Histogram = field(default_factory=partial(Histogram, INTER_TOKEN_SECONDS))
    """Mean time per token after the first, of each finished request; 0 for a single token."""

    queue_seconds: Histogram = field(default_factory=partial(Histogram, REQUEST_SECONDS))
    latency_seconds: Histogram = field(default_factory=partial(Histogram, REQUEST_SECONDS))
    request_prompt_tokens: Histogram = field(default_factory=partial(Histogram, REQUEST_TOKENS))
    request_generation_tokens: Histogram = field(default_factory=partial(Histogram, REQUEST_TOKENS))
    request_prefill_computed_tokens: Histogram = field(default_factory=partial(Histogram, REQUEST_TOKENS))
    iteration_tokens: Histogram = field(default_factory=partial(Histogram, ITERATION_TOKENS))
    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished_requests: int = 0
    preemptions: int = 0
    prefix_queried_tokens: int = 0
    prefix_found_tokens: int = 0
