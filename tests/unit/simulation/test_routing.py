"""Routers that are not perfect: random, round-robin, and with old information."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from controller.simulation.profile import EngineProfile
from controller.simulation.router import Router, Routing, RoutingPolicy
from controller.simulation.server import Server
from controller.simulation.workload import Request

PROFILE = EngineProfile(
    model_id="m", alpha_ms=10, beta_ms=1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=1000, max_num_seqs=64
)
NAMES = ("a", "b", "c", "d")


def router(routing: Routing, seed: int = 1) -> Router:
    """Return a router with four servers."""
    made = Router(routing=routing, seed=seed)
    for name in NAMES:
        made.join(name, Server(PROFILE), now_us=0)
    return made


def chosen(made: Router, requests: int, *, gap_us: int = 1000) -> list[str]:
    """Submit long requests and return the servers that they go to."""
    found = []
    for number in range(requests):
        before = _submitted(made)
        at_us = number * gap_us
        made.submit(
            Request(request_id=number, arrival_us=at_us, prompt_tokens=10, output_tokens=10_000), now_us=at_us
        )
        after = _submitted(made)
        found += [name for name in NAMES if after[name] > before[name]]
    return found


def _submitted(made: Router) -> dict[str, int]:
    return {name: server.waiting + server.running for name, server in made.servers.items()}


def test_round_robin_visits_one_server_after_the_other() -> None:
    """Each gets a quarter of the requests, whatever its queue."""
    found = chosen(router(Routing(policy="round-robin")), 12)

    assert Counter(found) == dict.fromkeys(NAMES, 3)
    assert all(NAMES.index(b) == (NAMES.index(a) + 1) % 4 for a, b in pairwise(found))


def test_random_choices_depend_on_the_seed_only() -> None:
    """All servers get about as many requests."""
    routing = Routing(policy="random")
    found = chosen(router(routing), 200)

    assert found == chosen(router(routing), 200) != chosen(router(routing, seed=2), 200)
    assert set(Counter(found)) == set(NAMES)
    assert min(Counter(found).values()) > 25


def test_old_information_sends_all_requests_to_the_same_server() -> None:
    """For one second it is the first one, which was empty; then its cache is the fullest."""
    found = chosen(router(Routing(stale_seconds=1.0)), 20, gap_us=100_000)

    assert found == ["a"] * 10 + ["b"] * 10


def test_a_server_that_joined_since_counts_as_empty() -> None:
    """The router has not looked at it yet; all others run requests."""
    made = router(Routing(stale_seconds=1.0))
    chosen(made, 13, gap_us=500_000)
    made.join("e", Server(PROFILE, now_us=6_000_000), now_us=6_000_000)

    made.submit(
        Request(request_id=99, arrival_us=6_400_000, prompt_tokens=10, output_tokens=9), now_us=6_400_000
    )

    assert made.servers["e"].waiting + made.servers["e"].running == 1


@pytest.mark.parametrize("policy", ["shortest-queue", "random", "round-robin"])
def test_only_servers_that_can_hold_a_request_get_it(policy: RoutingPolicy) -> None:
    """The request is larger than the caches of four servers; only the fifth one is large enough."""
    made = router(Routing(policy=policy))
    large = EngineProfile(model_id="m", alpha_ms=10, beta_ms=1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=5000)
    made.join("large", Server(large), now_us=0)
    for number in range(5):
        made.submit(Request(request_id=number, arrival_us=0, prompt_tokens=16_000, output_tokens=2), now_us=0)
    made.submit(Request(request_id=9, arrival_us=0, prompt_tokens=80_000, output_tokens=2), now_us=0)

    assert made.servers["large"].waiting == 5
    assert made.refused == 1


def test_an_age_that_is_not_used_is_rejected() -> None:
    """The message says what is allowed."""
    with pytest.raises(ValueError, match="stale_seconds requires the policy shortest-queue"):
        Routing(policy="random", stale_seconds=1.0)
