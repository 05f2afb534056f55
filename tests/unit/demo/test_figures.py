"""What clients measure, how the clock runs, and what is read off the machine."""

from __future__ import annotations

import os

import pytest

from controller.simulation.engine import Engine
from controller.simulation.profile import EngineProfile
from controller.simulation.request import Completion, Request
from hack.demo.clock import SimulatedClock
from hack.demo.figures import RecentFigures
from hack.demo.footprint import mean_call_milliseconds, resident_mebibytes
from hack.demo.rehearsal import simulated
from hack.demo.scenario import (
    CHAPTERS,
    END_SECONDS,
    GIVES_WAY_SECONDS,
    MODEL_CHAPTER,
    START_UP_SECONDS,
    arrivals,
    chapter_at,
    load,
    requests_until_the_end,
)
from hack.demo.traffic import Traffic


def completion(finish_seconds: float, *, ttft_seconds: float) -> Completion:
    """Build a request that took a second in all."""
    arrival_us = round((finish_seconds - 1) * 1e6)
    return Completion(
        request=Request(request_id=0, arrival_us=arrival_us, prompt_tokens=1, output_tokens=2),
        submitted_us=arrival_us,
        first_token_us=arrival_us + round(ttft_seconds * 1e6),
        finish_us=round(finish_seconds * 1e6),
        preemptions=0,
    )


def test_rate_is_that_of_the_last_ten_seconds() -> None:
    """Two per second for a minute, then five per second for ten seconds."""
    figures, arrived = RecentFigures(), 0
    for second in range(1, 71):
        arrived += 2 if second <= 60 else 5
        figures.update(float(second), arrived=arrived, finished=[])

    assert figures.view(unfinished_requests=0).requests_per_second == 5


def test_latency_forgets_what_finished_long_ago() -> None:
    """Ten slow requests, and twenty seconds later ten fast ones."""
    figures = RecentFigures()
    figures.update(5.0, arrived=10, finished=[completion(5.0, ttft_seconds=0.9)] * 10)
    assert figures.view(unfinished_requests=0).ttft_p90_ms == pytest.approx(900)

    figures.update(25.0, arrived=20, finished=[completion(25.0, ttft_seconds=0.1)] * 10)
    assert figures.view(unfinished_requests=0).ttft_p90_ms == pytest.approx(100)


def test_a_handful_of_requests_has_no_percentile() -> None:
    """Too few to tell is not fast."""
    figures = RecentFigures()
    figures.update(5.0, arrived=4, finished=[completion(5.0, ttft_seconds=0.1)] * 4)

    assert figures.view(unfinished_requests=3).ttft_p90_ms is None


def test_clock_stands_until_it_is_released_and_then_runs_at_its_speed() -> None:
    """Engines join at zero; three seconds of the wall are six of the simulation."""
    wall = [100.0]
    clock = SimulatedClock(speed=2.0, clock=lambda: wall[0])
    wall[0] = 105.0
    assert clock.microseconds == 0

    clock.release()
    wall[0] = 108.0
    clock.release()

    assert clock.seconds == 6.0
    assert clock.microseconds == 6_000_000


def test_chapters_follow_each_other_to_the_end() -> None:
    """Each moment belongs to one chapter."""
    chapters = [*CHAPTERS, MODEL_CHAPTER]
    assert [chapter_at(c.from_seconds).name for c in chapters] == [c.name for c in chapters]
    assert MODEL_CHAPTER.from_seconds == END_SECONDS


def test_each_load_lasts_beyond_the_end() -> None:
    """Who keeps the demo running must not see it fall silent."""
    for phases in load().values():
        assert sum(phase.duration_seconds for phase in phases) > END_SECONDS

    for model_id, stream in arrivals().items():
        last = next(r for r in stream if r.arrival_us > 2 * 3600 * 1_000_000)
        assert last.arrival_us < 3 * 3600 * 1_000_000, model_id


def test_the_engines_take_as_long_to_start_as_the_story_counts_on() -> None:
    """Kwok goes by the manifests, the checks by the story; at no pace is that nothing."""
    played, _ = simulated()

    assert {variant.start_up_seconds for variant in played.variants} == {START_UP_SECONDS}
    assert START_UP_SECONDS >= 20


def test_the_freemium_model_gives_way_after_the_window_that_the_story_counts_on() -> None:
    """The premium model is excused for so long; no window is shorter than a start-up."""
    played, _ = simulated()
    windows = {
        variant.name: played.published_behaviour(variant).down.window_seconds for variant in played.variants
    }

    assert {windows["llama-8b-a100"], windows["llama-8b-l40s"]} == {GIVES_WAY_SECONDS}
    assert min(windows.values()) >= START_UP_SECONDS


def test_requests_end_with_the_story() -> None:
    """What is scored are all arrivals until then, those of the last second included."""
    for model_id, made in requests_until_the_end().items():
        stream = arrivals()[model_id]
        assert made == [next(stream) for _ in made], model_id
        assert made[-1].arrival_us < END_SECONDS * 1e6 <= next(stream).arrival_us


def test_what_runs_at_the_end_is_finished_without_disturbing_the_engines() -> None:
    """Ten requests run when the story ends; they count as finished, and go on running."""
    profile = EngineProfile(
        model_id="m", alpha_ms=10, beta_ms=0.1, gamma_ms=5, delta_ms=0.1, num_gpu_blocks=1000
    )
    asked = [Request(request_id=n, arrival_us=n, prompt_tokens=10, output_tokens=500) for n in range(10)]
    traffic = Traffic({"m": iter(asked)})
    traffic.fleet.join("one", Engine(profile, now_us=0), now_us=0)
    traffic.advance(1.0)

    finished = traffic.concluded(1.0)["m"]

    assert sorted(done.request.request_id for done in finished) == list(range(10))
    assert min(done.finish_us for done in finished) > 1_000_000
    assert traffic.clients()["m"].unfinished_requests == 10


METRICS = """
# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="mutate.x",operation="CREATE",le="+Inf"} 3
apiserver_admission_webhook_admission_duration_seconds_sum{name="mutate.x",operation="CREATE"} 0.03
apiserver_admission_webhook_admission_duration_seconds_count{name="mutate.x",operation="CREATE"} 3
apiserver_admission_webhook_admission_duration_seconds_sum{name="mutate.x",operation="UPDATE"} 0.01
apiserver_admission_webhook_admission_duration_seconds_count{name="mutate.x",operation="UPDATE"} 1
# TYPE apiserver_crd_conversion_webhook_duration_seconds histogram
apiserver_crd_conversion_webhook_duration_seconds_sum{status="success"} 0.5
apiserver_crd_conversion_webhook_duration_seconds_count{status="success"} 100
# TYPE something_else gauge
something_else 1
"""


def test_mean_time_of_webhooks_is_over_all_their_calls() -> None:
    """Operations are added up; conversion has no name of its own."""
    (first, calls, mean), (second, more_calls, second_mean) = mean_call_milliseconds(METRICS)

    assert (first, calls, second, more_calls) == ("conversion", 100, "mutate.x", 4)
    assert (round(mean, 6), round(second_mean, 6)) == (5.0, 10.0)


def test_memory_of_this_very_process_is_plausible() -> None:
    """More than ten mebibytes, less than two thousand."""
    assert 10 < resident_mebibytes(os.getpid()) < 2000
