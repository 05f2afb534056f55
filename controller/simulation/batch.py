"""What an engine keeps of its requests: their state, the running batch, and its use of the KV cache.

All decoding sequences grow together, by as many tokens each, so a clock of tokens is common to them: a
sequence opens a new block every `block_size` ticks, always in the same residue class. Counting sequences per
class makes the growth by a token a single lookup, however many sequences run.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from controller.simulation.profile import EngineProfile
from controller.simulation.workload import Request


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
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


class BlockLedger:
    """The number of used blocks, and of blocks that the next tokens will open."""

    def __init__(self, *, total_blocks: int, block_size: int) -> None:
        self.total_blocks = total_blocks
        self.block_size = block_size
        self.used_blocks = 0
        self._growing = [0] * block_size
        self._growing_sequences = 0

    @property
    def free_blocks(self) -> int:
        """Number of unused blocks."""
        return self.total_blocks - self.used_blocks

    @property
    def usage(self) -> float:
        """Used share of all blocks, 0.0 to 1.0."""
        return self.used_blocks / self.total_blocks

    def blocks(self, tokens: int) -> int:
        """Return the number of blocks that hold this many tokens."""
        return -(-tokens // self.block_size)

    def start_growing(self, tokens: int, *, clock: int) -> None:
        """Record that a sequence of `tokens` gains one token at `clock` and at each later tick."""
        self._growing[(clock - tokens) % self.block_size] += 1
        self._growing_sequences += 1

    def stop_growing(self, tokens: int, *, clock: int) -> None:
        """Undo `start_growing`; `tokens` is what the sequence would hold before `clock`."""
        self._growing[(clock - tokens) % self.block_size] -= 1
        self._growing_sequences -= 1

    def growth(self, clock: int, *, ticks: int = 1) -> int:
        """Return the blocks that growing sequences open in `ticks` ticks from `clock` on."""
        size, growing = self.block_size, self._growing
        first = clock % size
        if ticks == 1:
            return growing[first]
        rounds, rest = divmod(ticks, size)
        opened = sum(growing[first : first + rest]) + sum(growing[: max(0, first + rest - size)])
        return rounds * self._growing_sequences + opened

    def safe_ticks(self) -> int:
        """Return a number of ticks that fit for all residue classes; 0 if the next one may not."""
        if not self._growing_sequences:
            return 0
        return self.free_blocks // self._growing_sequences * self.block_size


class Batch:
    """Sequences in order of admission, the clock of tokens, and the block ledger.

    A sequence is either prefilling or decoding. `clock` counts the tokens that each decoding sequence has
    gained since the engine started: one per iteration, or with speculative decoding as many on average as the
    profile says, rounded such that all iterations together never deviate by a whole token.
    """

    def __init__(self, profile: EngineProfile) -> None:
        self.clock = 0
        self.ledger = BlockLedger(total_blocks=profile.num_gpu_blocks, block_size=profile.block_size)
        self.prefilling: list[Sequence] = []
        self.decodes = 0
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

    def sequences(self) -> list[Sequence]:
        """Return all sequences, in order of admission."""
        return list(self._sequences.values())

    def has_room(self, sequence: Sequence) -> bool:
        """Return whether the sequence may enter now, with its whole context in the cache."""
        blocks = self.ledger.blocks(sequence.context_tokens)
        return len(self._sequences) < self._max_num_seqs and blocks <= self.ledger.free_blocks

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
        return self.ledger.growth(begin, ticks=self.clock_after(after + iterations) - begin)

    def grow(self, *, after: int = 0, iterations: int = 1) -> None:
        """Take the blocks that `growth` returns."""
        self.ledger.used_blocks += self.growth(after=after, iterations=iterations)

    def admit(self, sequence: Sequence) -> None:
        """Admit the sequence, to be prefilled except for what is found in the prefix cache."""
        self._sequences[sequence.request.request_id] = sequence
        self.ledger.used_blocks += self.ledger.blocks(sequence.context_tokens)
        sequence.uncomputed_tokens = sequence.context_tokens - sequence.found_tokens
        self.prefilling.append(sequence)

    def start_decoding(self, sequence: Sequence) -> None:
        """Move a sequence to the decoding ones, after its prefill produced a token."""
        self.prefilling.remove(sequence)
        sequence.decode_clock = self.clock
        self.decodes += 1
        self.ledger.start_growing(sequence.cached_tokens(self.clock), clock=self.clock)
        heappush(self._finishing, (sequence.last_clock, sequence.request.request_id, sequence))

    def remove(self, sequence: Sequence) -> None:
        """Remove the sequence, finished or not, and free its blocks."""
        tokens = sequence.cached_tokens(self.clock)
        if sequence.decode_clock is None:
            self.prefilling.remove(sequence)
        else:
            self.ledger.stop_growing(tokens, clock=self.clock)
            self.decodes -= 1
        self.ledger.used_blocks -= self.ledger.blocks(tokens)
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
        """Return a number of iterations for which the cache has room, whatever blocks they open."""
        return self.ledger.safe_ticks() * self._per_iterations // self._tokens

    def iterations_to_finish(self) -> int:
        """Return the iterations until a sequence gets its last token; some must be decoding."""
        return -(-(self._next_finish() + 1) * self._per_iterations // self._tokens) - self._iteration

    def pop_finished(self) -> list[Sequence]:
        """Remove and return all sequences that have got their last token."""
        finished = []
        while self.decodes and self._next_finish() < self.clock:
            sequence = heappop(self._finishing)[2]
            self.remove(sequence)
            finished.append(sequence)
        return finished

    def _next_finish(self) -> int:
        """Return the next tick that yields a last token."""
        while not self._is_due(*self._finishing[0]):
            heappop(self._finishing)
        return self._finishing[0][0]

    def _is_due(self, last_clock: int, request_id: int, sequence: Sequence) -> bool:
        # A preempted sequence leaves its heap entry behind; when it decodes again, it ends at a later tick.
        is_decoding = sequence.decode_clock is not None and request_id in self._sequences
        return is_decoding and sequence.last_clock == last_clock
