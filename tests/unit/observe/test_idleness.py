"""Since when a model has had no request, as far as anybody watched."""

from __future__ import annotations

from support.engine_totals import alone, counted

from controller.observe.engines import EngineRecords
from controller.observe.idleness import Idleness
from controller.observe.readings import Reading

POD, MODEL = ("ns", "pod"), ("ns", "llama")
PODS = {POD: MODEL}


def reading(time_seconds: float, *, running: int = 0, finished: float = 5) -> Reading:
    """Return a reading of an engine that has finished some requests."""
    return Reading(
        time_seconds=time_seconds,
        kv_usage=0.0,
        running=running,
        kv_tokens=160,
        parts=alone(counted(finished, prompt_tokens=10 * finished)),
        model_names=frozenset(),
    )


def watched(*looks: Reading | None) -> float:
    """Return how long the model is idle after a look every 10 s; None is an engine that is gone."""
    engines, idleness = EngineRecords(), Idleness()
    now_seconds = 0.0
    for look in looks:
        present = {POD} if look else set()
        after = engines.updated({POD: look} if look else {}, present, asked=present, now_seconds=now_seconds)
        models = PODS if look else {}
        idleness = idleness.updated(models, before=engines, after=after, now_seconds=now_seconds)
        engines, now_seconds = after, now_seconds + 10
    return idleness.idle_seconds(MODEL, now_seconds=now_seconds - 10)


def test_a_model_is_idle_since_it_was_last_seen_busy() -> None:
    """Time counts from the last reading with a request in it."""
    assert watched(reading(0), reading(10, running=1), reading(20), reading(30)) == 20


def test_requests_that_came_and_went_between_two_looks_are_seen() -> None:
    """Counters of finished requests tell of them."""
    assert watched(reading(0), reading(10), reading(20, finished=6), reading(30, finished=6)) == 10


def test_after_a_restart_nobody_knows_so_time_counts_from_there() -> None:
    """A model that may have been busy a second ago keeps its replica."""
    assert watched(reading(0)) == 0
    assert watched(reading(0), reading(10)) == 10
    assert Idleness().idle_seconds(MODEL, now_seconds=10**6) == 0


def test_while_no_engine_runs_nothing_is_idle() -> None:
    """A replica that comes back has its whole grace."""
    assert watched(reading(0), reading(10), None, reading(30)) == 0


def test_an_engine_that_only_misses_a_look_does_not_start_the_time_over() -> None:
    """Its last word still stands; whether that may be acted on is another question."""
    engines = EngineRecords().updated({POD: reading(0)}, {POD}, asked={POD}, now_seconds=0.0)
    first = Idleness().updated(PODS, before=EngineRecords(), after=engines, now_seconds=0.0)
    silent = engines.updated({}, {POD}, asked={POD}, now_seconds=50.0)

    second = first.updated(PODS, before=engines, after=silent, now_seconds=50.0)

    assert second.idle_seconds(MODEL, now_seconds=50.0) == 50
