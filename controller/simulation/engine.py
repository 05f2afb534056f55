"""One inference engine with continuous batching, simulated iteration by iteration.

The rules are those of vLLM's scheduler: running sequences first, each gaining one token per iteration, or
with speculative decoding also the accepted ones; then the prompts, in chunks, within the token budget; then
new sequences in order of arrival, as long as the batch and the KV cache have room. When the cache is full,
the sequence admitted last is preempted: it returns to the front of the queue and its tokens are recomputed. A
client that gives up aborts its request: a waiting one leaves the queue at once, and one whose prompt is being
computed leaves when that iteration ends.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from controller.simulation.batch import Batch, CompletedRequest, Measures, Patience, Sequence
from controller.simulation.profile import EngineProfile
from controller.simulation.workload import Request


@dataclass(kw_only=True, slots=True, eq=False)
class _Iteration:
    """The computation in progress: a run of equal iterations, or one iteration with prompts.

    A request that arrives in the meantime may shorten the run to the iteration in progress. Only the new
    blocks of that iteration are taken in the ledger.
    """

    each_us: int
    iterations: int
    decodes: int
    chunks: tuple[tuple[Sequence, int], ...]


class SimulatedEngine:
    """A queue, a running batch and a clock that only `advance` moves.

    The history depends on the requests, the times of their submission and, for a profile with noise, the
    seed, but not on how time is divided into calls of `advance`.
    """

    def __init__(self, profile: EngineProfile, *, now_us: int = 0, seed: int = 0) -> None:
        self.profile = profile
        self._chance = random.Random(seed) if profile.step_noise else None  # noqa: S311 (not for security)
        self.measures = Measures()
        self._queue: deque[Sequence] = deque()
        self._patience = Patience()
        self._aborted: list[Sequence] = []  # prompts in the batch, until the iteration ends
        self._abandoned: list[Request] = []
        self._batch = Batch(profile)
        self._step: _Iteration | None = None
        self._now_us = now_us

    @property
    def running(self) -> int:
        """Number of sequences in the batch."""
        return len(self._batch)

    @property
    def waiting(self) -> int:
        """Number of sequences in the queue, including preempted ones."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._step is None and not self._queue and not len(self._batch)

    @property
    def kv_usage(self) -> float:
        """Used share of the KV cache, 0.0 to 1.0."""
        return self._batch.used_blocks / self._batch.total_blocks

    @property
    def next_change_us(self) -> int | None:
        """Next time at which running or waiting may change without a new request; None for an idle engine."""
        if self._step is None:
            return None if self.is_idle else self._now_us
        end_us = self._now_us + self._step.iterations * self._step.each_us
        abort_us = self._patience.next_us()
        return end_us if abort_us is None else min(end_us, abort_us)

    def kv_usage_at(self, now_us: int) -> float:
        """Return `kv_usage` at a time up to `next_change_us`, if nothing is submitted.

        It never decreases before then, because no sequence leaves.
        """
        batch, step = self._batch, self._step
        if step is None or step.iterations == 1:
            return batch.used_blocks / batch.total_blocks
        # The iterations begun by then. The first of them has taken its blocks; one that begins just then is
        # left open, as by `advance`.
        begun = -((self._now_us - now_us) // step.each_us)
        coming = batch.growth(after=1, iterations=max(begun, 1) - 1)
        return (batch.used_blocks + coming) / batch.total_blocks

    def submit(self, request: Request, *, now_us: int, patience_end_us: int | None = None) -> None:
        """Queue a request; it is considered when the iteration in progress ends.

        Its client gives up at `patience_end_us`, which is later, unless it has a first token by then; None
        for never. The engine must have advanced to `now_us`, and not further. Raises ValueError if the KV
        cache could never hold the request.
        """
        if not self.profile.fits(prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens):
            raise ValueError(
                f"{request.prompt_tokens} + {request.output_tokens} tokens exceed the KV cache of "
                f"{self.profile.kv_tokens} tokens"
            )
        if self.is_idle:
            self._now_us = now_us
        found_tokens = self.profile.found_tokens(request.request_id, prompt_tokens=request.prompt_tokens)
        sequence = Sequence(request=request, submitted_us=now_us, found_tokens=found_tokens)
        self._queue.append(sequence)
        if patience_end_us is not None:
            self._patience.add(sequence, patience_end_us)
        # Behind another request, it cannot enter before that one.
        if len(self._queue) == 1:
            self._interrupt_for_first()

    def advance(self, until_us: int) -> list[CompletedRequest]:
        """Compute until `until_us` and return the completions in order; an iteration may stay in progress."""
        finished = self.change(until_us)
        if self._step is not None:
            self._compute_until(self._step, until_us)
        return finished

    def change(self, until_us: int) -> list[CompletedRequest]:
        """Process events as `advance` does, but leave counters of iterations without events open.

        Then `running`, `waiting` and `kv_usage_at` are correct, but counters and `kv_usage` may lag behind.
        """
        finished: list[CompletedRequest] = []
        while self._step is not None or (self._now_us < until_us and not self.is_idle):
            if self._step is None:
                self._step = self._schedule()
            step = self._step
            end_us = self._now_us + step.iterations * step.each_us
            abort_us = self._patience.next_us()
            if abort_us is not None and abort_us < end_us:
                if abort_us > until_us:
                    break
                self._compute_until(step, abort_us)
                self._abort(abort_us)
                continue
            if end_us > until_us:
                break
            finished += self._complete(step)
            self._abort(end_us)
        return finished

    def pop_abandoned(self) -> list[Request]:
        """Return the requests whose clients gave up since the last call."""
        abandoned, self._abandoned = self._abandoned, []
        return abandoned

    def drain(self) -> list[Sequence]:
        """Stop at once, and return all unfinished requests, running ones first, whose tokens are lost."""
        running = [item for item in self._batch.sequences() if item not in self._aborted]
        unfinished = [*running, *self._queue]
        self._queue.clear()
        self._aborted.clear()
        self._patience = Patience()
        self._batch = Batch(self.profile)
        self._step = None
        return unfinished

    def _abort(self, now_us: int) -> None:
        """Abort the requests whose clients have given up by now, which is not before the present iteration.

        Those in the batch have been chosen for the iteration in progress, and leave when it ends.
        """
        ended = self._patience.pop_ended(now_us)
        for sequence in ended:
            self._abandoned.append(sequence.request)
            if sequence not in self._batch:
                self._queue.remove(sequence)
            elif self._step is None:
                self._batch.remove(sequence)
            else:
                self._aborted.append(sequence)
                self._step.iterations = 1
        if ended and self._queue:
            self._interrupt_for_first()

    def _interrupt_for_first(self) -> None:
        """End the run of equal iterations with the one in progress if the first request can then enter.

        One that does not fit now cannot enter before a sequence leaves.
        """
        if self._step is not None and self._batch.has_room(self._queue[0]):
            self._step.iterations = 1

    def _schedule(self) -> _Iteration:
        # Decoding sequences come first: prompts get what these leave of blocks and of the token budget. As in
        # vLLM, no sequence enters in an iteration that had to preempt one.
        has_preempted = self._make_room()
        self._batch.grow()
        chunks = self._chunks(admits=not has_preempted)
        prompt_tokens = sum(tokens for _, tokens in chunks)
        return _Iteration(
            each_us=self._iteration_us(prompt_tokens),
            iterations=1 if chunks or not self.profile.is_even else self._equal_iterations(),
            decodes=self._batch.decodes,
            chunks=chunks,
        )

    def _iteration_us(self, prompt_tokens: int) -> int:
        """Return the duration of the next iteration, whose blocks are already taken."""
        batch = self._batch
        each_us = self.profile.iteration_us(
            decodes=batch.decodes,
            prompt_tokens=prompt_tokens,
            cached_tokens=batch.used_blocks * batch.block_size,
        )
        if self._chance is None:
            return each_us
        noise = self.profile.step_noise
        return max(1, round(each_us * self._chance.uniform(1 - noise, 1 + noise)))

    def _make_room(self) -> bool:
        """Preempt until the next iteration's new blocks are free, and return whether that was necessary."""
        batch, before = self._batch, self.measures.preemptions
        while batch.growth() > batch.free_blocks:
            victim = batch.preempt()
            victim.last_token_us = self._now_us if victim.first_token_us is not None else 0
            self._queue.appendleft(victim)
            self.measures.preemptions += 1
        return self.measures.preemptions > before

    def _chunks(self, *, admits: bool) -> tuple[tuple[Sequence, int], ...]:
        """Distribute the token budget among unfinished prompts and sequences that may enter."""
        budget = self.profile.max_num_batched_tokens - self._batch.decodes
        chunks = []
        for sequence in self._batch.prefilling:
            tokens = min(budget, sequence.uncomputed_tokens)
            if tokens:
                chunks.append((sequence, tokens))
                budget -= tokens
        while admits and budget and self._queue and self._batch.has_room(self._queue[0]):
            sequence = self._enter()
            tokens = min(budget, sequence.uncomputed_tokens)
            chunks.append((sequence, tokens))
            budget -= tokens
        return tuple(chunks)

    def _enter(self) -> Sequence:
        sequence = self._queue.popleft()
        self._batch.admit(sequence)
        if sequence.scheduled_us is None:
            sequence.scheduled_us = self._now_us
            self.measures.queue_seconds.observe((self._now_us - sequence.submitted_us) / 1e6)
            self.measures.prefix_queried_tokens += sequence.request.prompt_tokens
            self.measures.prefix_found_tokens += sequence.found_tokens
        return sequence

    def _equal_iterations(self) -> int:
        """Return the iterations to compute at once: only the last may finish a sequence or fill the cache.

        Without a prompt in the batch no sequence can enter either: only a completion makes room.
        """
        return max(1, min(self._batch.iterations_to_finish(), 1 + self._batch.safe_iterations()))

    def _compute_until(self, step: _Iteration, until_us: int) -> None:
        """Compute the iterations of the run that end by then; one that begins at that time is left open."""
        ended, rest_us = divmod(until_us - self._now_us, step.each_us)
        if not ended:
            return
        begun = ended if rest_us else ended - 1
        self._batch.grow(after=1, iterations=begun)
        self._count(step, ended)
        step.iterations -= ended
        if not rest_us:
            self._step = None

    def _complete(self, step: _Iteration) -> list[CompletedRequest]:
        if step.iterations > 1:
            # The first iteration took its blocks when the run was scheduled.
            self._batch.grow(after=1, iterations=step.iterations - 1)
        self._step = None
        self._count(step, step.iterations)
        for sequence in self._aborted:
            self._batch.remove(sequence)
        for sequence, computed_tokens in step.chunks:
            sequence.uncomputed_tokens -= computed_tokens
            if not sequence.uncomputed_tokens and sequence not in self._aborted:
                self._emit_from_prefill(sequence)
        self._aborted.clear()
        return [self._finish(sequence) for sequence in self._batch.pop_finished()]

    def _count(self, step: _Iteration, iterations: int) -> None:
        """End iterations of a step, with the tokens of all decoding sequences.

        Like vLLM, one time per iteration and sequence is observed, however many tokens it yields, and
        iterations are observed only if they yield a token.
        """
        self._now_us += iterations * step.each_us
        gained = self._batch.end_iterations(iterations)
        prompt_tokens = sum(tokens for _, tokens in step.chunks)
        least, more = divmod(gained, iterations)
        observe = self.measures.iteration_tokens.observe
        if step.decodes or any(tokens == sequence.uncomputed_tokens for sequence, tokens in step.chunks):
            observe(step.decodes * least + prompt_tokens, iterations - more)
            if more:  # of all iterations, these yield one token more than the others
                observe(step.decodes * (least + 1) + prompt_tokens, more)
        if step.decodes:
            self.measures.inter_token_seconds.observe(step.each_us / 1e6, step.decodes * iterations)
            self.measures.generation_tokens += step.decodes * gained

    def _emit_from_prefill(self, sequence: Sequence) -> None:
        """End a prefill, which yields a token: the first, or the next one of a preempted sequence."""
        sequence.generated_tokens += 1
        self.measures.generation_tokens += 1
        if sequence.first_token_us is None:
            sequence.first_token_us = self._now_us
            self.measures.prompt_tokens += sequence.request.prompt_tokens
            self.measures.time_to_first_token_seconds.observe((self._now_us - sequence.submitted_us) / 1e6)
        else:
            self.measures.inter_token_seconds.observe((self._now_us - sequence.last_token_us) / 1e6)
        self._batch.start_decoding(sequence)

    def _finish(self, sequence: Sequence) -> CompletedRequest:
        measures, request, first_token_us = self.measures, sequence.request, sequence.first_token_us
        assert first_token_us is not None
        completion = CompletedRequest(request=request, first_token_us=first_token_us, finish_us=self._now_us)
        # The last iteration may yield more tokens than the request asked for.
        measures.generation_tokens -= self._batch.clock - 1 - sequence.last_clock
        measures.finished_requests += 1
        measures.latency_seconds.observe((self._now_us - sequence.submitted_us) / 1e6)
        measures.request_token_seconds.observe(completion.inter_token_latency_seconds)
        measures.request_prompt_tokens.observe(request.prompt_tokens)
        measures.request_prefill_computed_tokens.observe(request.prompt_tokens - sequence.found_tokens)
        measures.request_generation_tokens.observe(request.output_tokens)
        return completion
