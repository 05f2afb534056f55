"""A server: data-parallel ranks with their own queues, batches and KV caches, and the metrics of a scrape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.engines.readings import reading_of
from controller.simulation.batch import Histogram
from controller.simulation.profile import EngineProfile
from controller.simulation.reconciler import series_of
from controller.simulation.router import Router
from controller.simulation.server import Server, exposition
from controller.simulation.workload import Request

PROFILE = EngineProfile(
    model_id="m", alpha_ms=10, beta_ms=1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=100, max_num_seqs=4
)


def request(number: int, *, prompt: int = 100, output: int = 50) -> Request:
    """Return a request that arrives at 0."""
    return Request(request_id=number, arrival_us=0, prompt_tokens=prompt, output_tokens=output)


def test_requests_are_spread_over_the_ranks() -> None:
    """Eight requests fill both batches of four; with one rank, four of them wait."""
    both, one = (Server(replace(PROFILE, ranks=ranks)) for ranks in (2, 1))
    for server in (both, one):
        for number in range(8):
            server.submit(request(number), now_us=0)
        server.advance(1)

    assert [(engine.running, engine.waiting) for engine in both.ranks] == [(4, 0), (4, 0)]
    assert (one.running, one.waiting) == (4, 4)


def test_ranks_do_not_slow_each_other() -> None:
    """Two requests on two ranks take as long as one on an engine of its own."""
    server, alone = Server(replace(PROFILE, ranks=2)), Server(PROFILE)
    for number in (0, 1):
        server.submit(request(number), now_us=0)
    alone.submit(request(0), now_us=0)

    (done,) = alone.advance(10**9)
    assert [item.finish_us for item in server.advance(10**9)] == [done.finish_us] * 2
    assert server.is_idle
    assert server.next_change_us is None


def test_a_request_must_fit_the_cache_of_one_rank() -> None:
    """The router refuses a request that would fit the caches of both ranks together."""
    router = Router()
    router.join("a", Server(replace(PROFILE, ranks=2)), now_us=0)
    router.submit(request(0, prompt=1000, output=601), now_us=0)
    router.submit(request(1, prompt=1000, output=602), now_us=0)

    assert router.refused == 1
    assert len(router.advance(10**9)) == 1


def test_the_usage_of_the_cache_is_the_mean_of_the_ranks() -> None:
    """One of two caches has 7 of 100 blocks in use."""
    server = Server(replace(PROFILE, ranks=2))
    server.submit(request(0), now_us=0)
    server.advance(1)

    assert server.kv_usage == server.kv_usage_at(1) == pytest.approx(0.035)


def test_draining_returns_the_requests_of_all_ranks() -> None:
    """They are retried on another server."""
    server = Server(replace(PROFILE, ranks=2))
    for number in range(3):
        server.submit(request(number), now_us=0)

    assert sorted(item.request.request_id for item in server.drain()) == [0, 1, 2]
    assert server.is_idle


QUOTED = EngineProfile(
    model_id='meta/llama "8b"',
    alpha_ms=10,
    beta_ms=1,
    gamma_ms=5,
    delta_ms=0.1,
    num_gpu_blocks=100,
    max_num_seqs=2,
)


def scraped(engine: Server) -> dict[str, float]:
    """Return samples by name, with the bound of a bucket appended."""
    families = text_string_to_metric_families(exposition(engine).decode())
    return {
        s.name + (f"/{s.labels['le']}" if "le" in s.labels else ""): s.value
        for family in families
        for s in family.samples
    }


@pytest.fixture
def engine() -> Server:
    """Return an engine with one request finished, two running and one waiting."""
    engine = Server(QUOTED)
    engine.submit(Request(request_id=0, arrival_us=0, prompt_tokens=100, output_tokens=3), now_us=0)
    engine.advance(100_000)
    for number in (1, 2, 3):
        engine.submit(
            Request(request_id=number, arrival_us=100_000, prompt_tokens=100, output_tokens=90),
            now_us=100_000,
        )
    engine.advance(100_001)
    return engine


def test_gauges_and_counters_describe_requests_tokens_and_cache(engine: Server) -> None:
    """These are the metrics that planning reads."""
    samples = scraped(engine)

    assert samples["vllm:num_requests_running"] == 2
    assert samples["vllm:num_requests_waiting"] == 1
    assert samples["vllm:kv_cache_usage_perc"] == pytest.approx(2 * 7 / 100)
    assert samples["vllm:request_success_total"] == 1
    assert samples["vllm:prompt_tokens_total"] == 100
    assert samples["vllm:generation_tokens_total"] == 3
    assert samples["vllm:request_prompt_tokens_sum"] == 100
    assert samples["vllm:request_generation_tokens_count"] == 1
    assert samples["vllm:prefix_cache_queries_total"] == 300
    assert samples["vllm:prefix_cache_hits_total"] == 0
    assert samples["vllm:num_preemptions_total"] == 0


def test_histograms_count_first_tokens_and_times_between_tokens(engine: Server) -> None:
    """15 ms to the first token, then two intervals of 11 ms, under both metric names for them."""
    samples = scraped(engine)

    assert samples["vllm:time_to_first_token_seconds_sum"] == pytest.approx(0.015)
    assert samples["vllm:time_to_first_token_seconds_bucket/0.01"] == 0
    assert samples["vllm:time_to_first_token_seconds_bucket/0.02"] == 1
    assert samples["vllm:time_to_first_token_seconds_bucket/+Inf"] == 1
    # One prefill and two iterations of one sequence; the prefill of two sequences has not finished.
    assert samples["vllm:iteration_tokens_total_count"] == 3
    assert samples["vllm:iteration_tokens_total_sum"] == 102
    assert samples["vllm:request_prefill_kv_computed_tokens_sum"] == 100
    assert samples["vllm:request_prefill_kv_computed_tokens_count"] == 1
    for name in ("vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"):
        assert samples[f"{name}_sum"] == pytest.approx(0.022)
        assert samples[f"{name}_count"] == 2
    assert samples["vllm:request_time_per_output_token_seconds_sum"] == pytest.approx(0.011)
    assert samples["vllm:request_time_per_output_token_seconds_bucket/0.01"] == 0
    assert samples["vllm:request_time_per_output_token_seconds_bucket/0.025"] == 1
    assert samples["vllm:request_queue_time_seconds_count"] == 3
    assert samples["vllm:e2e_request_latency_seconds_sum"] == pytest.approx(0.037)


def test_labels_are_those_of_a_real_engine(engine: Server) -> None:
    """All series have the model name, except the cache's, whose labels are its sizes; quotes are escaped."""
    families = list(text_string_to_metric_families(exposition(engine).decode()))

    for sample in (s for f in families for s in f.samples):
        if sample.name == "vllm:cache_config_info":
            assert sample.labels == {"engine": "0", "block_size": "16", "num_gpu_blocks": "100"}
        else:
            assert sample.labels["model_name"] == 'meta/llama "8b"'


def test_every_rank_has_its_own_series() -> None:
    """Three requests go to the shortest queues of two ranks; the reading of the pod adds them up."""
    server = Server(replace(QUOTED, ranks=2))
    for number in range(3):
        server.submit(Request(request_id=number, arrival_us=0, prompt_tokens=100, output_tokens=90), now_us=0)
    server.advance(1)

    families = list(text_string_to_metric_families(exposition(server).decode()))

    running = [s for f in families for s in f.samples if s.name == "vllm:num_requests_running"]
    assert [(s.labels["engine"], s.value) for s in running] == [("0", 2), ("1", 1)]
    assert {s.labels["engine"] for f in families for s in f.samples} == {"0", "1"}
    reading = reading_of(series_of(server), time_seconds=0.0)
    assert (reading.engines, reading.running, reading.kv_tokens) == (2, 3, 2 * QUOTED.kv_tokens)


def test_histogram_bounds_are_inclusive_upper_bounds() -> None:
    """A value on a bound counts for that bucket, as in Prometheus."""
    histogram = Histogram((1.0, 2.0))
    histogram.observe(1.0)
    histogram.observe(1.5, 3)
    histogram.observe(9.0)

    assert histogram.cumulative() == [("1.0", 1), ("2.0", 4), ("+Inf", 5)]
    assert (histogram.count, histogram.total) == (5, 14.5)
