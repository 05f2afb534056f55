"""The time since the last known request of a model."""

from __future__ import annotations

from support.engine_totals import alone, counted

from controller.engines.readings import Reading
from controller.engines.records import EngineRecords, Idleness

POD, MODEL = ("ns", "pod"), ("ns", "llama")
PODS = {POD: MODEL}


def reading(time_seconds: float, *, running: int = 0, finished: float = 5) -> Reading:
    """Return a reading of an engine that has finished some requests."""
    return Reading(
        time_seconds=time_seconds,
        running=running,
        kv_tokens=160,
        parts=alone(counted(finished, prompt_tokens=10 * finished)),
        model_names=frozenset(),
    )


def watched(*looks: Reading | None) -> float:
    """Return the idle time of the model after a reading every 10 s; None: the engine's pod is gone."""
    engines, idleness = EngineRecords(), Idleness()
    now_seconds = 0.0
    for look in looks:
        present = {POD} if look else set()
        after = engines.update(
            {POD: look} if look else {}, present, scraped_keys=present, now_seconds=now_seconds
        )
        models = PODS if look else {}
        idleness = idleness.update(models, before=engines, after=after, now_seconds=now_seconds)
        engines, now_seconds = after, now_seconds + 10
    return idleness.idle_seconds(MODEL, now_seconds=now_seconds - 10)


def test_idle_time_starts_at_the_last_reading_with_a_running_request() -> None:
    """Later readings without requests do not restart it."""
    assert watched(reading(0), reading(10, running=1), reading(20), reading(30)) == 20


def test_requests_that_started_and_finished_between_two_readings_are_detected() -> None:
    """The counter of finished requests has increased."""
    assert watched(reading(0), reading(10), reading(20, finished=6), reading(30, finished=6)) == 10


def test_idle_time_starts_at_zero_after_a_restart_of_the_controller() -> None:
    """The model may have been busy just before, so its replica is kept."""
    assert watched(reading(0)) == 0
    assert watched(reading(0), reading(10)) == 10
    assert Idleness().idle_seconds(MODEL, now_seconds=10**6) == 0


def test_idle_time_starts_over_when_an_engine_returns() -> None:
    """A new replica has its whole grace period."""
    assert watched(reading(0), reading(10), None, reading(30)) == 0


def test_a_missed_scrape_does_not_restart_idle_time() -> None:
    """The last reading still counts; whether it is recent enough to act on is checked elsewhere."""
    engines = EngineRecords().update({POD: reading(0)}, {POD}, scraped_keys={POD}, now_seconds=0.0)
    first = Idleness().update(PODS, before=EngineRecords(), after=engines, now_seconds=0.0)
    silent = engines.update({}, {POD}, scraped_keys={POD}, now_seconds=50.0)

    second = first.update(PODS, before=engines, after=silent, now_seconds=50.0)

    assert second.idle_seconds(MODEL, now_seconds=50.0) == 50
