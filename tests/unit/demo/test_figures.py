"""Measured figures of the demo, its clock and its load."""

from __future__ import annotations

import pytest

from controller.simulation.batch import CompletedRequest
from controller.simulation.profile import EngineProfile
from controller.simulation.server import Server
from controller.simulation.workload import Request
from hack.demo.phases import SimulatedClock
from hack.demo.rehearsal import demo_scenario
from hack.demo.scenario import (
    CHAPTERS,
    END_SECONDS,
    MODEL_CHAPTER,
    START_UP_SECONDS,
    arrivals,
    chapter_at,
    load,
    requests_until_the_end,
)
from hack.demo.traffic import RecentFigures, Traffic


def completion(finish_seconds: float, *, ttft_seconds: float) -> CompletedRequest:
    """Return a request that took one second in total."""
    arrival_us = round((finish_seconds - 1) * 1e6)
    return CompletedRequest(
        request=Request(request_id=0, arrival_us=arrival_us, prompt_tokens=1, output_tokens=2),
        first_token_us=arrival_us + round(ttft_seconds * 1e6),
        finish_us=round(finish_seconds * 1e6),
    )


def test_the_request_rate_is_that_of_the_last_ten_seconds() -> None:
    """There are two requests per second for a minute, then five per second for ten seconds."""
    figures, arrived = RecentFigures(), 0
    for second in range(1, 71):
        arrived += 2 if second <= 60 else 5
        figures.update(float(second), arrived=arrived, finished=[])

    assert figures.view(unfinished_requests=0).requests_per_second == 5


def test_latency_omits_requests_that_finished_long_ago() -> None:
    """There are ten slow requests, and ten fast ones twenty seconds later."""
    figures = RecentFigures()
    figures.update(5.0, arrived=10, finished=[completion(5.0, ttft_seconds=0.9)] * 10)
    assert figures.view(unfinished_requests=0).ttft_p90_ms == pytest.approx(900)

    figures.update(25.0, arrived=20, finished=[completion(25.0, ttft_seconds=0.1)] * 10)
    assert figures.view(unfinished_requests=0).ttft_p90_ms == pytest.approx(100)


def test_a_few_requests_have_no_percentile() -> None:
    """A missing percentile must not look like a low latency."""
    figures = RecentFigures()
    figures.update(5.0, arrived=4, finished=[completion(5.0, ttft_seconds=0.1)] * 4)

    assert figures.view(unfinished_requests=3).ttft_p90_ms is None


def test_the_clock_stands_still_until_its_release_and_then_runs_at_its_speed() -> None:
    """Engines join at time zero; three seconds of real time are six simulated ones."""
    wall = [100.0]
    clock = SimulatedClock(speed=2.0, clock=lambda: wall[0])
    wall[0] = 105.0
    assert clock.microseconds == 0

    clock.release()
    wall[0] = 108.0
    clock.release()

    assert clock.seconds == 6.0
    assert clock.microseconds == 6_000_000


def test_chapters_follow_each_other_without_gaps() -> None:
    """The start of each chapter belongs to this chapter."""
    chapters = [*CHAPTERS, MODEL_CHAPTER]
    assert [chapter_at(c.from_seconds).name for c in chapters] == [c.name for c in chapters]
    assert MODEL_CHAPTER.from_seconds == END_SECONDS


def test_each_load_lasts_beyond_the_end() -> None:
    """If the demo is kept running, requests continue to arrive."""
    for phases in load().values():
        assert sum(phase.duration_seconds for phase in phases) > END_SECONDS

    for model_id, stream in arrivals().items():
        last = next(r for r in stream if r.arrival_us > 2 * 3600 * 1_000_000)
        assert last.arrival_us < 3 * 3600 * 1_000_000, model_id


def test_the_engines_start_up_time_is_the_one_that_the_checks_assume() -> None:
    """Kwok reads it from the manifests, the checks from the scenario; it is at least 20 s."""
    played, _ = demo_scenario()

    assert {variant.start_up_seconds for variant in played.variants} == {START_UP_SECONDS}
    assert START_UP_SECONDS >= 20


def test_autoscalers_follow_decisions_without_a_window() -> None:
    """Decisions are held already; a window would delay the replicas of a higher priority."""
    played, _ = demo_scenario()

    assert {played.published_behaviour(variant).down.window_seconds for variant in played.variants} == {0.0}


def test_scored_requests_end_with_the_scenario() -> None:
    """All requests that arrive before the end are scored."""
    for model_id, made in requests_until_the_end().items():
        stream = arrivals()[model_id]
        assert made == [next(stream) for _ in made], model_id
        assert made[-1].arrival_us < END_SECONDS * 1e6 <= next(stream).arrival_us


def test_running_requests_are_concluded_without_changing_the_engines() -> None:
    """Ten requests are running at the end; they count as finished, and the engines still have them."""
    profile = EngineProfile(
        model_id="m", alpha_ms=10, beta_ms=0.1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=1000
    )
    asked = [Request(request_id=n, arrival_us=n, prompt_tokens=10, output_tokens=500) for n in range(10)]
    traffic = Traffic({"m": iter(asked)})
    traffic.fleet.join("one", Server(profile, now_us=0), now_us=0)
    traffic.advance(1.0)

    finished = traffic.conclude(1.0)["m"]

    assert sorted(done.request.request_id for done in finished) == list(range(10))
    assert min(done.finish_us for done in finished) > 1_000_000
    assert traffic.clients()["m"].unfinished_requests == 10
