"""Fleets of engines: no request is lost, and latency depends on load and the number of engines."""

from __future__ import annotations

from statistics import mean, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.simulation.batch import CompletedRequest
from controller.simulation.fleet import Fleet
from controller.simulation.profile import EngineProfile
from controller.simulation.router import Router
from controller.simulation.server import Server
from controller.simulation.workload import Request, load_trace, piece

PROFILE = EngineProfile(
    model_id="m", alpha_ms=7, beta_ms=0.05, gamma_ms=5, delta_ms=0.05, num_gpu_blocks=2000, max_num_seqs=64
)
LONGEST_ITERATION_SECONDS = PROFILE.iteration_us(decodes=64, prompt_tokens=8192) / 1e6


def request(number: int, *, prompt: int, output: int, at_us: int = 0) -> Request:
    """Return a request with its tokens."""
    return Request(request_id=number, arrival_us=at_us, prompt_tokens=prompt, output_tokens=output)


def served(engines: int, requests: list[Request]) -> list[CompletedRequest]:
    """Serve requests to the end on a number of equal engines."""
    fleet = Fleet({"m": iter(requests)})
    for number in range(engines):
        fleet.join(f"e{number}", Server(PROFILE), now_us=0)
    fleet.advance(10**12)
    return fleet.finished["m"]


def conversations(from_seconds: float, to_seconds: float, *, speed: float) -> list[Request]:
    """Return the requests of a piece of a trace, at a multiple of its speed."""
    entries = piece(load_trace("azure-llm-2023-conv"), from_seconds=from_seconds, to_seconds=to_seconds)
    return [
        Request(
            request_id=number,
            arrival_us=round(entry.offset_ms * 1000 / speed),
            prompt_tokens=entry.prompt_tokens,
            output_tokens=entry.output_tokens,
        )
        for number, entry in enumerate(entries)
    ]


def mean_latency_seconds(done: list[CompletedRequest]) -> float:
    """Return the mean time from arrival to the last token."""
    return mean((c.finish_us - c.request.arrival_us) / 1e6 for c in done)


def ttft_p90_seconds(done: list[CompletedRequest]) -> float:
    """Return the 90th percentile of the time to first token."""
    return quantiles([c.time_to_first_token_seconds for c in done], n=10)[-1]


def test_removing_one_engine_breaks_the_latency_target() -> None:
    """At 37 requests/s of a conversation trace, six engines meet a target of 0.5 s, five exceed 1 s."""
    surge = conversations(1500, 2100, speed=5)

    assert ttft_p90_seconds(served(6, surge)) < 0.5
    assert ttft_p90_seconds(served(5, surge)) > 1.0


@pytest.mark.parametrize("speed", [2.0, 4.0])
def test_each_additional_engine_lowers_the_mean_latency_of_a_recorded_trace(speed: float) -> None:
    """The same requests are served from overload to low utilization."""
    requests = conversations(0, 300, speed=speed)

    latencies = [mean_latency_seconds(served(number, requests)) for number in range(1, 7)]

    assert latencies == sorted(latencies, reverse=True)


small_requests = st.lists(
    st.tuples(st.integers(0, 2_000_000), st.integers(1, 3000), st.integers(1, 60)), min_size=1, max_size=40
).map(
    lambda rows: [
        request(number, prompt=prompt, output=output, at_us=at)
        for number, (at, prompt, output) in enumerate(sorted(rows))
    ]
)
"""Requests within two seconds, at low to high utilization."""


@given(small_requests, st.integers(1, 4))
def test_an_additional_engine_increases_mean_latency_by_at_most_one_iteration(
    rows: list[Request], engines: int
) -> None:
    """It can increase because requests wait for the end of the iteration in progress."""
    fewer, more = (mean_latency_seconds(served(count, rows)) for count in (engines, engines + 1))

    assert more <= fewer + LONGEST_ITERATION_SECONDS


events = st.lists(
    st.tuples(
        st.sampled_from(["join", "leave", "cordon", "submit", "submit", "submit"]),
        st.integers(0, 300_000),
        st.integers(1, 200),
        st.integers(1, 100),
    ),
    max_size=60,
)
"""Engines join and leave while requests arrive; the second number is the time since the previous event."""


@given(events, st.sampled_from([None, 20_000, 500_000]))
def test_no_request_is_lost_while_engines_join_and_leave(
    rows: list[tuple[str, int, int, int]], patience_us: int | None
) -> None:
    """Always, arrived = held + waiting + running + finished + refused + abandoned.

    In the end, none is held, waiting or running. A running request that is abandoned leaves within an
    iteration, until when it counts twice.
    """
    profile = EngineProfile(
        model_id="m", alpha_ms=7, beta_ms=1, gamma_ms=5, delta_ms=0.5, num_gpu_blocks=17, max_num_seqs=5
    )
    router, now_us, done = Router(patience_us=patience_us), 0, []
    for number, (event, gap_us, prompt, output) in enumerate(rows):
        now_us += gap_us
        done += router.advance(now_us)
        if event == "join":
            router.join(f"e{number}", Server(profile, now_us=now_us), now_us=now_us)
        elif event == "leave" and router.servers:
            router.leave(min(router.servers), now_us=now_us)
        elif event == "cordon" and router.servers:
            router.cordon(max(router.servers))
        elif event == "submit":
            router.submit(request(number, prompt=prompt, output=output, at_us=now_us), now_us=now_us)
        counted = router.unfinished + router.refused + len(done) + len(router.abandoned)
        running = sum(engine.running for engine in router.servers.values())
        assert 0 <= counted - router.arrived <= min(running, len(router.abandoned))
        assert all(0 <= engine.kv_usage <= 1 for engine in router.servers.values())

    router.join("last", Server(profile, now_us=now_us), now_us=now_us)
    done += router.advance(10**12)

    assert router.unfinished == 0
    finished = {c.request.request_id for c in done}
    given_up = {request.request_id for request in router.abandoned}
    assert router.arrived == router.refused + len(finished) + len(given_up)
    assert len(given_up) == len(router.abandoned)
    assert all(c.finish_us >= c.first_token_us > c.request.arrival_us for c in done)


def test_a_request_goes_to_the_shortest_queue_then_to_the_emptiest_cache() -> None:
    """One of the three engines has a queue, one has a fuller cache, and one is idle."""
    router = Router()
    busy, fuller, free = (Server(PROFILE) for _ in range(3))
    busy.submit(request(1, prompt=10, output=9, at_us=1), now_us=1)
    fuller.submit(request(2, prompt=500, output=900), now_us=0)
    fuller.advance(1)
    for name, engine in (("a-busy", busy), ("b-fuller", fuller), ("c-free", free)):
        router.join(name, engine, now_us=1)

    for number in (3, 4):
        router.submit(request(number, prompt=10, output=10, at_us=1), now_us=1)

    assert (busy.waiting, fuller.waiting, free.waiting) == (1, 1, 1)


@given(events)
def test_the_shortest_queue_is_found_without_advancing_every_engine(
    rows: list[tuple[str, int, int, int]],
) -> None:
    """Each request goes to the engine that would be chosen if all engines were advanced to its arrival."""
    profile = EngineProfile(
        model_id="m", alpha_ms=7, beta_ms=1, gamma_ms=5, delta_ms=0.5, num_gpu_blocks=40, max_num_seqs=3
    )
    lazy, asked, now_us = Router(), dict[str, Server](), 0
    for number in range(3):
        lazy.join(f"e{number}", Server(profile), now_us=0)
        asked[f"e{number}"] = Server(profile)
    for number, (_, gap_us, prompt, output) in enumerate(rows):
        now_us += gap_us
        arrival = request(number, prompt=prompt, output=output, at_us=now_us)
        for engine in asked.values():
            engine.advance(now_us)
        chosen = min(asked, key=lambda name: (asked[name].waiting, asked[name].kv_usage, name))
        asked[chosen].submit(arrival, now_us=now_us)
        lazy.submit(arrival, now_us=now_us)
    end_us = now_us + 1
    lazy.advance(end_us)
    for name, engine in asked.items():
        engine.advance(end_us)
        met = lazy.servers[name]
        assert (met.waiting, met.running, met.kv_usage) == (engine.waiting, engine.running, engine.kv_usage)
        assert met.ranks[0].measures.generation_tokens == engine.ranks[0].measures.generation_tokens


def test_requests_of_a_removed_engine_restart_and_keep_their_time_to_first_token() -> None:
    """A client that has received the first token only waits longer for the rest."""
    router = Router()
    router.join("a", Server(PROFILE), now_us=0)
    router.submit(request(1, prompt=100, output=100), now_us=0)
    router.advance(500_000)
    router.join("b", Server(PROFILE, now_us=500_000), now_us=500_000)

    router.leave("a", now_us=500_000)
    (done,) = router.advance(10**9)

    assert done.time_to_first_token_seconds == pytest.approx(0.010)
    assert done.finish_us == pytest.approx(1e6 * (0.5 + 0.010 + 99 * 0.00705))


def test_requests_in_the_queue_of_a_removed_engine_are_sent_to_another_engine() -> None:
    """Their time to first token is measured from their arrival."""
    router = Router()
    router.join("a", Server(PROFILE), now_us=0)
    router.submit(request(1, prompt=100, output=1), now_us=0)
    router.advance(5_000)
    router.join("b", Server(PROFILE, now_us=5_000), now_us=5_000)

    router.leave("a", now_us=5_000)
    (done,) = router.advance(10**9)

    assert done.time_to_first_token_seconds == pytest.approx(0.005 + 0.010)


def test_requests_are_held_while_there_is_no_engine() -> None:
    """With zero replicas, requests wait and are not lost."""
    router = Router()
    router.submit(request(1, prompt=100, output=1), now_us=0)

    assert router.unfinished == 1
    router.join("a", Server(PROFILE, now_us=7_000_000), now_us=7_000_000)
    (done,) = router.advance(10**9)

    assert done.time_to_first_token_seconds == pytest.approx(7.010)


def test_held_requests_are_abandoned_when_their_patience_ends() -> None:
    """No engine exists; the request that arrived later is still waiting."""
    router = Router(patience_us=1_000_000)
    for number in (0, 1):
        at_us = number * 500_000
        router.submit(request(number, prompt=9, output=1, at_us=at_us), now_us=at_us)

    router.advance(1_000_000)

    assert [item.request_id for item in router.abandoned] == [0]
    assert router.unfinished == 1
    router.join("a", Server(PROFILE, now_us=1_600_000), now_us=1_600_000)
    assert [item.request_id for item in router.abandoned] == [0, 1]


def test_a_retried_request_keeps_its_patience() -> None:
    """It waited 0.4 of its 0.5 s on the engine that is removed, so it gives up 0.1 s later."""
    router = Router(patience_us=500_000)
    router.join("a", Server(PROFILE), now_us=0)
    for number in range(PROFILE.max_num_seqs + 1):
        router.submit(request(number, prompt=1, output=400), now_us=0)
    router.advance(400_000)

    router.leave("a", now_us=400_000)
    router.advance(499_999)
    assert not router.abandoned
    router.advance(500_000)

    assert [item.request_id for item in router.abandoned] == [PROFILE.max_num_seqs]
    assert len(router.held) == PROFILE.max_num_seqs  # they have their first tokens


def test_a_cordoned_engine_finishes_its_requests_and_gets_no_new_ones() -> None:
    """A pod that is being deleted drains; new requests go to other engines or are held."""
    router = Router()
    router.join("a", Server(PROFILE), now_us=0)
    router.submit(request(1, prompt=100, output=9), now_us=0)
    router.cordon("a")
    router.submit(request(2, prompt=100, output=9), now_us=0)

    assert [done.request.request_id for done in router.advance(10**9)] == [1]
    assert len(router.held) == 1
    router.leave("a", now_us=10**9)
    router.join("b", Server(PROFILE, now_us=10**9), now_us=10**9)
    assert [done.request.request_id for done in router.advance(2 * 10**9)] == [2]


def test_engines_can_join_and_leave_without_an_advance_to_that_time() -> None:
    """Requests that arrive before are routed; each completion is counted once."""
    arrivals = [request(number, prompt=100, output=2, at_us=number * 1_000_000) for number in range(10)]
    fleet = Fleet({"m": iter(arrivals)})
    fleet.join("a", Server(PROFILE), now_us=0)

    fleet.join("b", Server(PROFILE, now_us=5_500_000), now_us=5_500_000)
    fleet.leave("a", model_id="m", now_us=7_500_000)

    assert fleet.routers["m"].arrived == 8
    fleet.advance(20_000_000)
    assert len(fleet.finished["m"]) == 10
    fleet.advance(20_000_000)
    assert len(fleet.finished["m"]) == 10
