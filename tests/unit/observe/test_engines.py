"""What is remembered of engines: mean lengths of late, restarts, pods that are gone."""

from __future__ import annotations

from engine_totals import counted

from controller.observe.engines import EngineRecords
from controller.observe.readings import Reading

KEY = ("ns", "pod")


def reading(
    time_seconds: float, *, prompts: float, prompt_tokens: float, kv_tokens: int | None = 160
) -> Reading:
    """Return a reading whose outputs are as many as its prompts, of 10 tokens each."""
    return Reading(
        time_seconds=time_seconds,
        kv_usage=0.5,
        waiting=0,
        running=0,
        kv_tokens=kv_tokens,
        totals=counted(prompts, prompt_tokens=prompt_tokens),
        model_names=frozenset(),
    )


def records(*readings: Reading) -> EngineRecords:
    """Return the records after some readings of one pod."""
    state = EngineRecords()
    for item in readings:
        state = state.updated({KEY: item}, frozenset({KEY}))
    return state


def test_mean_lengths_are_those_of_late() -> None:
    """Requests from before the window do not count."""
    state = records(
        reading(0, prompts=100, prompt_tokens=100),
        reading(100, prompts=200, prompt_tokens=200),
        reading(450, prompts=210, prompt_tokens=1200),
    )

    sample = state.sample(KEY, now_seconds=460)

    assert sample is not None
    assert sample.avg_input_tokens == 100
    assert sample.avg_output_tokens == 10
    assert sample.age_seconds == 10


def test_a_restarted_engine_starts_over() -> None:
    """Counters that fell belong to another process."""
    state = records(reading(0, prompts=100, prompt_tokens=100), reading(10, prompts=2, prompt_tokens=20))

    sample = state.sample(KEY, now_seconds=10)

    assert sample is not None
    assert sample.avg_input_tokens == 10


def test_a_pod_that_is_gone_is_forgotten_and_one_that_never_spoke_has_no_sample() -> None:
    """Nothing is remembered of nobody."""
    state = records(reading(0, prompts=1, prompt_tokens=1))

    assert state.sample(("ns", "other"), now_seconds=0) is None
    assert state.updated({}, frozenset()).sample(KEY, now_seconds=0) is None


def test_an_engine_whose_memory_is_not_known_has_no_sample() -> None:
    """No size is made up for it."""
    state = records(reading(0, prompts=1, prompt_tokens=1, kv_tokens=None))

    assert state.sample(KEY, now_seconds=0) is None
