"""A server with data-parallel ranks: each has its own queue, batch and KV cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.simulation.profile import EngineProfile
from controller.simulation.request import Request
from controller.simulation.router import Router
from controller.simulation.server import Server

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
