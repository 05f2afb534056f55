"""A simulated engine: times, limits and counters, compared with examples computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.simulation.engine import SimulatedEngine
from controller.simulation.profile import EngineProfile
from controller.simulation.workload import Request

# An iteration takes 10 ms and 1 ms more per sequence; prompts take 5 ms and 0.1 ms per token.
PROFILE = EngineProfile(
    model_id="m", alpha_ms=10, beta_ms=1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=100, max_num_seqs=4
)


def request(request_id: int = 0, *, arrival_us: int = 0, prompt: int = 100, output: int = 3) -> Request:
    """Return a request that takes 15 ms to its first token and 11 ms for each further one."""
    return Request(request_id=request_id, arrival_us=arrival_us, prompt_tokens=prompt, output_tokens=output)


TIMES: dict[str, tuple[EngineProfile, list[Request], dict[int, tuple[int, int]]]] = {
    "gamma + delta x prompt, then alpha + beta for each further token": (
        PROFILE,
        [request()],
        {0: (15_000, 15_000 + 2 * 11_000)},
    ),
    "a later request waits for the iteration in progress, until 26 ms, and slows the next one": (
        PROFILE,
        [request(0, output=4), request(1, arrival_us=16_000, output=1)],
        {0: (15_000, 63_000), 1: (26_000 + 11_000 + 15_000, 52_000)},
    ),
    "a step takes longer by 10 us for each of the 112 tokens in the 7 blocks of the prompt": (
        replace(PROFILE, context_us_per_token=10.0),
        [request()],
        {0: (15_000, 15_000 + 2 * (11_000 + 1120))},
    ),
    "250 prompt tokens at 100 per iteration take three, each with its fixed time": (
        replace(PROFILE, max_num_batched_tokens=100),
        [request(prompt=250, output=1)],
        {0: (3 * 5_000 + 25_000, 40_000)},
    ),
}


@pytest.mark.parametrize(("profile", "asked", "expected"), TIMES.values(), ids=TIMES.keys())
def test_requests_take_the_computed_times(
    profile: EngineProfile, asked: list[Request], expected: dict[int, tuple[int, int]]
) -> None:
    """First and last tokens in microseconds; only iterations that yield a token are observed, as by vLLM."""
    engine, done = SimulatedEngine(profile), []
    for item in asked:
        done += engine.advance(item.arrival_us)
        engine.submit(item, now_us=item.arrival_us)
    done += engine.advance(1_000_000)

    assert {item.request.request_id: (item.first_token_us, item.finish_us) for item in done} == expected
    assert [item.finish_us for item in done] == sorted(item.finish_us for item in done)
    waits = [(item.first_token_us - item.request.arrival_us) / 1e6 for item in done]
    assert [item.time_to_first_token_seconds for item in done] == waits
    if len(asked) == 1:
        assert engine.measures.iteration_tokens.count == asked[0].output_tokens


def test_noise_is_bounded_and_reproducible() -> None:
    """The same seed gives the same times, another seed different ones; the sum stays within 5 %."""
    noisy = replace(PROFILE, step_noise=0.3)

    def finish_us(seed: int) -> int:
        engine = SimulatedEngine(noisy, seed=seed)
        engine.submit(request(output=101), now_us=0)
        return engine.advance(10_000_000)[0].finish_us

    assert finish_us(1) == finish_us(1) != finish_us(2)
    assert 0.95 < finish_us(1) / (15_000 + 100 * 11_000) < 1.05


def test_a_full_batch_admits_no_request_until_one_finishes() -> None:
    """The batch is limited to `max_num_seqs`, 4; the fifth request waits, and its queue time is measured."""
    engine = SimulatedEngine(PROFILE)
    for number in range(5):
        engine.submit(request(number), now_us=0)
    engine.advance(60_000)

    assert (engine.running, engine.waiting) == (4, 1)

    done = engine.advance(1_000_000)
    # 5 + 0.1 x 400 ms for four prompts at once, then two iterations of 14 ms until a sequence finishes
    assert done[-1].first_token_us == 45_000 + 2 * 14_000 + 15_000
    assert engine.measures.queue_seconds.total == pytest.approx(0.073)


def test_the_last_admitted_sequence_is_preempted_when_the_cache_is_full() -> None:
    """Two sequences of 2 blocks grow in a cache of 5: one restarts, and its tokens are counted only once."""
    engine = SimulatedEngine(replace(PROFILE, num_gpu_blocks=5))
    for number in range(2):
        engine.submit(request(number, prompt=32, output=40), now_us=0)

    first, second = engine.advance(10_000_000)

    assert (first.request.request_id, second.request.request_id) == (0, 1)
    assert first.finish_us < second.finish_us
    assert engine.measures.preemptions == 1
    assert engine.measures.generation_tokens == 80
    assert engine.kv_usage == 0


def test_kv_usage_counts_whole_blocks_of_prompt_and_generated_tokens() -> None:
    """32 prompt tokens fill two of 100 blocks; the first generated token needs a third."""
    engine = SimulatedEngine(PROFILE)
    engine.submit(request(prompt=32, output=10), now_us=0)

    engine.advance(1)
    assert engine.kv_usage == pytest.approx(0.02)
    engine.advance(9_000)
    assert engine.kv_usage == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("prompt", "output", "fits"),
    [
        pytest.param(1600, 1, True, id="a prompt that fills the cache can generate one token"),
        pytest.param(1600, 2, False, id="a second token needs one more slot"),
        pytest.param(1, 1600, True, id="the last token needs no slot"),
        pytest.param(1, 1601, False, id="one token too many"),
    ],
)
def test_a_request_larger_than_the_cache_is_rejected_on_submission(
    prompt: int, output: int, *, fits: bool
) -> None:
    """The cache holds 100 x 16 = 1600 tokens; a request that can never finish would block the queue."""
    engine = SimulatedEngine(PROFILE)

    if fits:
        engine.submit(request(prompt=prompt, output=output), now_us=0)
        assert len(engine.advance(10**12)) == 1
    else:
        with pytest.raises(ValueError, match="exceed the KV cache of 1600 tokens"):
            engine.submit(request(prompt=prompt, output=output), now_us=0)


def test_a_waiting_request_leaves_the_queue_when_its_client_gives_up() -> None:
    """It waits behind a full batch. The next one, which is patient, takes its place."""
    engine = SimulatedEngine(PROFILE)
    for number in range(4):
        engine.submit(request(number, output=100), now_us=0)
    engine.submit(request(4), now_us=0, patience_end_us=500_000)
    engine.submit(request(5), now_us=0)

    engine.advance(499_999)
    assert (engine.running, engine.waiting) == (4, 2)
    assert engine.next_change_us == 500_000
    engine.advance(500_000)
    assert (engine.running, engine.waiting) == (4, 1)
    done = engine.advance(10_000_000)

    assert [item.request.request_id for item in done] == [0, 1, 2, 3, 5]
    assert [item.request_id for item in engine.pop_abandoned()] == [4]
    assert engine.pop_abandoned() == []
    assert engine.measures.finished_requests == engine.measures.time_to_first_token_seconds.count == 5


def test_a_prompt_in_progress_is_dropped_at_the_end_of_the_iteration() -> None:
    """Its prefill takes 65 ms and would yield the first token; its client gives up before that."""
    engine = SimulatedEngine(PROFILE)
    engine.submit(request(0, prompt=600), now_us=0, patience_end_us=30_000)

    engine.advance(64_999)
    assert engine.running == 1
    assert engine.advance(10_000_000) == []

    assert engine.is_idle
    assert engine.kv_usage == 0
    assert len(engine.pop_abandoned()) == 1
    assert engine.measures.prompt_tokens == engine.measures.generation_tokens == 0


def test_a_client_with_a_first_token_waits_for_the_rest() -> None:
    """The first token arrives at 15 ms, exactly when patience ends."""
    engine = SimulatedEngine(PROFILE)
    engine.submit(request(0, output=100), now_us=0, patience_end_us=15_000)

    assert len(engine.advance(10_000_000)) == 1
    assert engine.pop_abandoned() == []


def test_tokens_in_the_prefix_cache_are_not_computed() -> None:
    """The mean is a quarter, so less than half of this prompt is found."""
    engine = SimulatedEngine(replace(PROFILE, prefix_hit_share=0.25))
    found = engine.profile.found_tokens(1, prompt_tokens=1000)
    engine.submit(request(1, prompt=1000, output=1), now_us=0)

    (done,) = engine.advance(1_000_000)

    assert 0 < found < 500
    assert done.first_token_us == 5_000 + 100 * (1000 - found)
    assert engine.measures.prompt_tokens == engine.measures.prefix_queried_tokens == 1000
    assert engine.measures.prefix_found_tokens == found
    assert engine.measures.request_prefill_computed_tokens.total == 1000 - found
    assert engine.measures.iteration_tokens.total == 1000 - found


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8])
def test_the_mean_share_of_found_tokens_is_that_of_the_profile(share: float) -> None:
    """It differs by request, and the last token is always computed."""
    profile = replace(PROFILE, prefix_hit_share=share)
    shares = [profile.found_tokens(number, prompt_tokens=1000) / 1000 for number in range(2000)]

    assert sum(shares) / len(shares) == pytest.approx(share, abs=0.002)
    assert len(set(shares)) > 300 or not share
    assert max(shares) < 1
    assert profile.found_tokens(1, prompt_tokens=1) == 0


def test_speculative_decoding_yields_several_tokens_per_iteration() -> None:
    """24 further tokens take ten iterations, of 2 or 3 tokens each; times are counted per iteration."""
    engine = SimulatedEngine(replace(PROFILE, accepted_tokens_per_step=2.4))
    engine.submit(request(output=25), now_us=0)

    (done,) = engine.advance(1_000_000)

    assert done.finish_us == 15_000 + 10 * 11_000
    assert done.inter_token_latency_seconds == pytest.approx(0.110 / 24)
    measures = engine.measures
    assert measures.generation_tokens == 25
    assert (measures.inter_token_seconds.count, measures.inter_token_seconds.total) == (
        10,
        pytest.approx(0.110),
    )
    assert measures.request_token_seconds.total == pytest.approx(0.110 / 24)
    assert measures.request_token_seconds.count == 1
    assert (measures.iteration_tokens.count, measures.iteration_tokens.total) == (11, 100 + 24)


def test_tokens_beyond_the_end_of_a_request_are_not_counted() -> None:
    """The first token and one more are asked for, and the only iteration yields four."""
    engine = SimulatedEngine(replace(PROFILE, accepted_tokens_per_step=4.0))
    engine.submit(request(output=2), now_us=0)

    (done,) = engine.advance(1_000_000)

    assert done.finish_us == 15_000 + 11_000
    assert engine.measures.generation_tokens == 2
    assert engine.kv_usage == 0


def test_a_drained_engine_returns_all_unfinished_requests() -> None:
    """Running requests come first; when a pod is removed, they are sent to other engines."""
    engine = SimulatedEngine(PROFILE)
    for number in range(6):
        engine.submit(request(number), now_us=0)
    engine.advance(50_000)

    given_up = engine.drain()

    assert [u.request.request_id for u in given_up] == [0, 1, 2, 3, 4, 5]
    assert [u.first_token_us for u in given_up] == [45_000] * 4 + [None] * 2
    assert (engine.running, engine.waiting, engine.kv_usage) == (0, 0, 0.0)


def test_all_invalid_fields_of_a_profile_are_reported() -> None:
    """Each message states the valid range."""
    with pytest.raises(ValueError, match="alpha_ms must be") as caught:
        EngineProfile(
            model_id="",
            alpha_ms=0,
            beta_ms=-1,
            gamma_ms=0,
            delta_ms=0,
            num_gpu_blocks=0,
            max_num_seqs=9000,
            step_noise=1,
            prefix_hit_share=1,
            accepted_tokens_per_step=0.5,
            ranks=0,
        )

    assert str(caught.value).split("; ") == [
        "alpha_ms must be greater than 0",
        "num_gpu_blocks must be greater than 0",
        "beta_ms must be greater than or equal to 0",
        "step_noise must be less than 1",
        "prefix_hit_share must be greater than or equal to 0 and less than 1",
        "accepted_tokens_per_step must be greater than or equal to 1",
        "ranks must be greater than or equal to 1",
        "max_num_batched_tokens must be greater than or equal to max_num_seqs",
        "model_id must not be empty",
    ]
