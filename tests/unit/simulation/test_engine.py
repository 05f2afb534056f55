"""What one engine does to requests: moments, limits and counters, by hand-computed examples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.simulation.engine import Engine
from controller.simulation.profile import EngineProfile
from controller.simulation.request import Request, RequestTooLargeError

# 10 ms per iteration, 1 ms more per sequence; a prompt takes 5 ms and 0.1 ms per token.
PROFILE = EngineProfile(
    model_id="m", alpha_ms=10, beta_ms=1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=100, max_num_seqs=4
)


def request(request_id: int = 0, *, arrival_us: int = 0, prompt: int = 100, output: int = 3) -> Request:
    """Make a request that takes 15 ms to its first token and 11 ms to each further one."""
    return Request(request_id=request_id, arrival_us=arrival_us, prompt_tokens=prompt, output_tokens=output)


def test_lone_request_takes_its_prefill_and_one_iteration_per_further_token() -> None:
    """TTFT is gamma + delta x prompt; the rest is (output - 1) x (alpha + beta)."""
    engine = Engine(PROFILE)
    engine.submit(request(), now_us=0)

    (done,) = engine.advance(1_000_000)

    assert done.first_token_us == 15_000
    assert done.finish_us == 15_000 + 2 * 11_000
    assert done.time_to_first_token_seconds == 0.015
    assert done.inter_token_latency_seconds == 0.011


def test_latecomer_waits_for_the_iteration_under_way_and_slows_the_others() -> None:
    """A request that arrives within an iteration is prefilled in the next, beside the other's decode."""
    engine = Engine(PROFILE)
    engine.submit(request(0, output=4), now_us=0)
    assert engine.advance(16_000) == []  # 15 ms prefill over, first decode under way until 26 ms
    engine.submit(request(1, arrival_us=16_000, output=1), now_us=16_000)

    second, first = engine.advance(1_000_000)

    assert second.request.request_id == 1
    assert second.first_token_us == 26_000 + 11_000 + 15_000
    assert first.finish_us == 52_000 + 11_000


def test_a_cache_that_fills_slows_the_steps() -> None:
    """Blocks of 16 tokens: the prompt of 100 takes 7 of them, 112 tokens at 10 us for each further token."""
    engine = Engine(replace(PROFILE, context_us_per_token=10.0))
    engine.submit(request(), now_us=0)

    (done,) = engine.advance(1_000_000)

    assert done.first_token_us == 15_000
    assert done.finish_us == 15_000 + 2 * (11_000 + 1120)


def test_noise_is_bounded_and_seeded() -> None:
    """The same seed gives the same steps, another one others; each is within its share of the even one."""
    noisy = replace(PROFILE, step_noise=0.3)

    def finish_us(seed: int) -> int:
        engine = Engine(noisy, seed=seed)
        engine.submit(request(output=101), now_us=0)
        return engine.advance(10_000_000)[0].finish_us

    assert finish_us(1) == finish_us(1) != finish_us(2)
    assert 0.95 < finish_us(1) / (15_000 + 100 * 11_000) < 1.05


def test_a_full_batch_lets_nobody_in_until_somebody_finishes() -> None:
    """max_num_seqs bounds the batch; the fifth of four waits in the queue and its wait is measured."""
    engine = Engine(PROFILE)
    for number in range(5):
        engine.submit(request(number), now_us=0)
    engine.advance(60_000)

    assert (engine.running, engine.waiting) == (4, 1)

    done = engine.advance(1_000_000)
    # 5 + 0.1 x 400 ms for four prompts at once, then two iterations of 14 ms: only then is there room
    assert done[-1].first_token_us == 45_000 + 2 * 14_000 + 15_000
    assert engine.measures.queue_seconds.total == pytest.approx(0.073)


def test_long_prompts_are_computed_in_chunks_within_the_token_budget() -> None:
    """250 tokens at 100 per iteration take three iterations, each with its fixed cost."""
    engine = Engine(replace(PROFILE, max_num_batched_tokens=100))
    engine.submit(request(prompt=250, output=1), now_us=0)

    (done,) = engine.advance(1_000_000)

    assert done.finish_us == 3 * 5_000 + 25_000


def test_when_the_cache_is_full_the_last_admitted_starts_over_and_loses_no_token() -> None:
    """Two sequences of 2 blocks grow in a cache of 5: one is preempted, no token is made twice."""
    engine = Engine(replace(PROFILE, num_gpu_blocks=5))
    for number in range(2):
        engine.submit(request(number, prompt=32, output=40), now_us=0)

    first, second = engine.advance(10_000_000)

    assert (first.request.request_id, first.preemptions) == (0, 0)
    assert (second.request.request_id, second.preemptions) == (1, 1)
    assert engine.measures.preemptions == 1
    assert engine.measures.generation_tokens == 80
    assert engine.kv_usage == 0


def test_kv_usage_counts_whole_blocks_of_prompt_and_generated_tokens() -> None:
    """32 prompt tokens fill two of 100 blocks; the first generated one opens a third."""
    engine = Engine(PROFILE)
    engine.submit(request(prompt=32, output=10), now_us=0)

    engine.advance(1)
    assert engine.kv_usage == pytest.approx(0.02)
    engine.advance(9_000)
    assert engine.kv_usage == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("prompt", "output", "fits"),
    [
        pytest.param(1600, 1, True, id="a prompt that fills the cache yields its one token"),
        pytest.param(1600, 2, False, id="a second token would need one more place"),
        pytest.param(1, 1600, True, id="the last token needs no place"),
        pytest.param(1, 1601, False, id="one token too many"),
    ],
)
def test_a_request_larger_than_the_cache_is_refused_at_once(prompt: int, output: int, *, fits: bool) -> None:
    """A cache of 100 blocks of 16 holds 1600 tokens; what can't ever finish must not block the queue."""
    engine = Engine(PROFILE)

    if fits:
        engine.submit(request(prompt=prompt, output=output), now_us=0)
        assert len(engine.advance(10**12)) == 1
    else:
        with pytest.raises(RequestTooLargeError, match="exceed the KV cache of 1600 tokens"):
            engine.submit(request(prompt=prompt, output=output), now_us=0)


def test_the_past_is_closed() -> None:
    """A request submitted before the moment to which the engine has advanced would rewrite its history."""
    engine = Engine(PROFILE)
    engine.advance(500)

    with pytest.raises(ValueError, match="must not be earlier than 500"):
        engine.submit(request(), now_us=499)


def test_drained_engine_gives_up_everything_running_first() -> None:
    """What an engine had not finished when its pod went away must be sent elsewhere, all of it."""
    engine = Engine(PROFILE)
    for number in range(6):
        engine.submit(request(number), now_us=0)
    engine.advance(50_000)

    given_up = engine.drain()

    assert [u.request.request_id for u in given_up] == [0, 1, 2, 3, 4, 5]
    assert [u.first_token_us for u in given_up] == [45_000] * 4 + [None] * 2
    assert (engine.running, engine.waiting, engine.kv_usage) == (0, 0, 0.0)


def test_profile_names_every_field_that_is_out_of_range() -> None:
    """All errors at once, each saying what is allowed."""
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
        )

    assert str(caught.value).split("; ") == [
        "alpha_ms must be greater than 0",
        "num_gpu_blocks must be greater than 0",
        "beta_ms must be greater than or equal to 0",
        "step_noise must be less than 1",
        "max_num_batched_tokens must be greater than or equal to max_num_seqs",
        "model_id must not be empty",
    ]
