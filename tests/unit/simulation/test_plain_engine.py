"""The engine, compared with a plain engine that counts every token of every sequence in every iteration.

The engine does not process a sequence between its first and its last token; this must not change results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.engine import SimulatedEngine
from controller.simulation.profile import EngineProfile
from controller.simulation.workload import Request


@dataclass(eq=False)
class PlainSequence:
    """A request with its generated and computed tokens and its blocks."""

    request: Request
    generated: int = 0
    computed: int = 0
    blocks: int = 0
    is_decoding: bool = False
    patience_end_us: float = math.inf


@dataclass
class PlainEngine:
    """An engine with the same rules, implemented one token at a time."""

    profile: EngineProfile
    now_us: int = 0
    queue: list[PlainSequence] = field(default_factory=list)
    batch: list[PlainSequence] = field(default_factory=list)
    finish_us: dict[int, int] = field(default_factory=dict)
    first_us: dict[int, int] = field(default_factory=dict)
    preemptions: int = 0
    iterations: int = 0
    patience_us: float = math.inf
    abandoned: list[int] = field(default_factory=list)

    def run(self, arrivals: list[Request]) -> None:
        """Serve all requests to the end."""
        coming = sorted(arrivals, key=lambda r: r.arrival_us)
        while coming or self.queue or self.batch:
            if not self.queue and not self.batch:
                self.now_us = max(self.now_us, coming[0].arrival_us)
            while coming and coming[0].arrival_us <= self.now_us:
                request = coming.pop(0)
                end_us = request.arrival_us + self.patience_us
                self.queue.append(PlainSequence(request, patience_end_us=end_us))
            self.abandon(self.queue)
            if self.queue or self.batch:
                self.iterate()
                self.abandon(self.batch)

    def abandon(self, sequences: list[PlainSequence]) -> None:
        """Drop those whose clients have given up without a first token."""
        gone = [
            s
            for s in sequences
            if s.patience_end_us <= self.now_us and s.request.request_id not in self.first_us
        ]
        self.abandoned += [s.request.request_id for s in gone]
        sequences[:] = [s for s in sequences if all(s is not other for other in gone)]

    def free(self) -> int:
        """Return the number of free blocks."""
        return self.profile.num_gpu_blocks - sum(s.blocks for s in self.batch)

    def blocks(self, tokens: int) -> int:
        """Return the number of blocks for a number of tokens."""
        return -(-tokens // self.profile.block_size)

    def context(self, sequence: PlainSequence) -> int:
        """Return the number of tokens that a prefill computes."""
        return sequence.request.prompt_tokens + sequence.generated

    def iterate(self) -> None:
        """Run one iteration: preempt, decode, prefill, admit."""
        decoding = [s for s in self.batch if s.is_decoding]
        mean = self.profile.accepted_tokens_per_step
        gained = math.floor((self.iterations + 1) * mean) - math.floor(self.iterations * mean)
        self.iterations += 1
        preempted = False
        while sum(self.blocks(s.computed + gained) - s.blocks for s in decoding) > self.free():
            victim = self.batch.pop()
            decoding = [s for s in decoding if s is not victim]
            victim.computed = victim.blocks = 0
            victim.is_decoding = False
            self.queue.insert(0, victim)
            self.preemptions += 1
            preempted = True
        for sequence in decoding:
            sequence.blocks = self.blocks(sequence.computed + gained)
        budget = self.profile.max_num_batched_tokens - len(decoding)
        chunks: dict[int, tuple[PlainSequence, int]] = {}
        for sequence in [s for s in self.batch if all(s is not d for d in decoding)]:
            chunk = min(budget, self.context(sequence) - sequence.computed)
            chunks[id(sequence)] = (sequence, chunk)
            budget -= chunk
        while not preempted and budget and self.queue and len(self.batch) < self.profile.max_num_seqs:
            if self.blocks(self.context(self.queue[0])) > self.free():
                break
            sequence = self.queue.pop(0)
            sequence.blocks = self.blocks(self.context(sequence))
            self.batch.append(sequence)
            request = sequence.request
            sequence.computed = self.profile.found_tokens(
                request.request_id, prompt_tokens=request.prompt_tokens
            )
            chunk = min(budget, self.context(sequence) - sequence.computed)
            chunks[id(sequence)] = (sequence, chunk)
            budget -= chunk
        prompt_tokens = sum(chunk for _, chunk in chunks.values())
        self.now_us += self.profile.iteration_us(
            decodes=len(decoding),
            prompt_tokens=prompt_tokens,
            cached_tokens=sum(s.blocks for s in self.batch) * self.profile.block_size,
        )
        for sequence in decoding:
            sequence.computed += gained
            sequence.generated += gained
        for sequence, chunk in chunks.values():
            target = self.context(sequence)
            sequence.computed += chunk
            known = self.first_us.get(sequence.request.request_id, self.now_us)
            if chunk and sequence.computed == target and known <= sequence.patience_end_us:
                sequence.generated += 1
                sequence.is_decoding = True
                self.first_us.setdefault(sequence.request.request_id, self.now_us)
        for sequence in [s for s in self.batch if s.generated >= s.request.output_tokens]:
            self.finish_us[sequence.request.request_id] = self.now_us
            self.batch = [s for s in self.batch if s is not sequence]


profiles = st.builds(
    EngineProfile,
    model_id=st.just("m"),
    alpha_ms=st.sampled_from([0.5, 3.3]),
    beta_ms=st.sampled_from([0.0, 0.7]),
    gamma_ms=st.sampled_from([0.0, 2.0]),
    delta_ms=st.sampled_from([0.0, 0.11]),
    num_gpu_blocks=st.integers(17, 40),
    block_size=st.sampled_from([1, 3, 4]),
    max_num_seqs=st.integers(1, 6),
    max_num_batched_tokens=st.sampled_from([6, 11, 100]),
    context_us_per_token=st.sampled_from([0.0, 0.0, 17.3]),
    prefix_hit_share=st.sampled_from([0.0, 0.5, 0.8]),
    accepted_tokens_per_step=st.sampled_from([1.0, 1.5, 2.25]),
)
"""Engines so small that batches fill, caches overflow and prompts are split into chunks."""

arrivals = st.lists(
    st.builds(
        lambda arrival_us, prompt, output: (arrival_us, prompt, output),
        st.integers(0, 60_000),
        st.integers(1, 9),
        st.integers(1, 7),
    ),
    min_size=1,
    max_size=12,
).map(
    lambda rows: [
        Request(request_id=number, arrival_us=at, prompt_tokens=prompt, output_tokens=output)
        for number, (at, prompt, output) in enumerate(sorted(rows))
    ]
)
"""Up to 12 requests; even the smallest cache holds 9 + 7 - 1 tokens, and 2 more of a speculative step."""


patiences = st.sampled_from([math.inf, 1, 4_000, 9_000, 20_000, 40_000])
"""Microseconds of patience, shorter and longer than an iteration."""


def serve(
    engine: SimulatedEngine, requests: list[Request], cuts: list[int], patience_us: float = math.inf
) -> tuple[dict[int, int], dict[int, int]]:
    """Return first-token and finish times by request ID; `advance` is called at arrivals and at `cuts`."""
    done = []
    events: list[tuple[int, Request | None]] = [(r.arrival_us, r) for r in requests]
    events += [(cut, None) for cut in cuts]
    for at, request in sorted(events, key=lambda event: event[0]):
        done += engine.advance(at)
        assert 0 <= engine.kv_usage <= 1
        if request is not None:
            end_us = None if patience_us == math.inf else at + round(patience_us)
            engine.submit(request, now_us=at, patience_end_us=end_us)
    done += engine.advance(10**12)
    return (
        {c.request.request_id: c.first_token_us for c in done},
        {c.request.request_id: c.finish_us for c in done},
    )


@given(profile=profiles, requests=arrivals, patience_us=patiences)
def test_all_times_equal_those_of_the_plain_engine(
    profile: EngineProfile, requests: list[Request], patience_us: float
) -> None:
    """First-token and finish times agree to the microsecond, and preemptions and token counts are equal.

    Abandoned requests are the same ones, and leave no trace in counters and cache.
    """
    plain = PlainEngine(profile, patience_us=patience_us)
    plain.run(requests)
    engine = SimulatedEngine(profile)

    first_us, finish_us = serve(engine, requests, cuts=[], patience_us=patience_us)

    assert first_us == plain.first_us
    assert finish_us == plain.finish_us
    assert sorted(r.request_id for r in engine.pop_abandoned()) == sorted(plain.abandoned)
    assert engine.measures.preemptions == plain.preemptions
    served = [r for r in requests if r.request_id in finish_us]
    assert engine.measures.finished_requests == len(served)
    assert engine.measures.time_to_first_token_seconds.count == len(served)
    assert engine.measures.generation_tokens == sum(r.output_tokens for r in served)
    assert engine.kv_usage == 0
    assert engine.is_idle
    gaps = engine.measures.inter_token_seconds
    tokens = sum(r.output_tokens - 1 for r in served)
    assert gaps.count == tokens if profile.accepted_tokens_per_step == 1 else gaps.count <= tokens
    assert engine.measures.prefix_queried_tokens >= engine.measures.prefix_found_tokens
    assert gaps.total == pytest.approx(sum(finish_us[i] - first_us[i] for i in finish_us) / 1e6)


@given(
    profile=profiles,
    noise=st.sampled_from([0.0, 0.3]),
    requests=arrivals,
    cuts=st.lists(st.integers(0, 300_000), max_size=30),
    patience_us=patiences,
)
def test_results_do_not_depend_on_how_time_is_divided_into_advances(
    profile: EngineProfile, noise: float, requests: list[Request], cuts: list[int], patience_us: float
) -> None:
    """The demo advances ten times per second, a simulation in large steps."""
    profile = replace(profile, step_noise=noise)

    cut, whole = SimulatedEngine(profile), SimulatedEngine(profile)
    assert serve(cut, requests, cuts, patience_us) == serve(whole, requests, [], patience_us)
    assert cut.pop_abandoned() == whole.pop_abandoned()
