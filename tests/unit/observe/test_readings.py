"""From vLLM's exposition to samples for planning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.observe.engines import EngineRecords
from controller.observe.readings import Reading, Totals, UnreadableMetricsError, parse_exposition, reading_of

EXPOSITION = """\
# HELP vllm:kv_cache_usage_perc KV-cache usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 4.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 1.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="0"} 1.0
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="1"} 1.0
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{le="1.0",model_name="m"} 0.0
vllm:request_prompt_tokens_sum{model_name="m"} 5000.0
vllm:request_prompt_tokens_count{model_name="m"} 10.0
# TYPE some_other_series counter
some_other_series_total 7.0
"""


def test_engines_of_one_pod_count_as_one() -> None:
    """Usage is the mean, queues and blocks add up."""
    reading = reading_of(parse_exposition(EXPOSITION), time_seconds=5.0)

    assert (reading.kv_usage, reading.waiting, reading.running) == (0.5, 7, 1)
    assert (reading.num_gpu_blocks, reading.block_size) == (200, 16)
    assert reading.totals == Totals(prompt_tokens=5000, prompts=10, output_tokens=0, outputs=0)
    assert reading.model_names == {"m"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", "missing: vllm:num_requests_waiting", id="an empty answer"),
        pytest.param("vllm:num_requests_waiting{", "no Prometheus exposition", id="a torn line"),
        pytest.param(
            EXPOSITION.replace(" 0.25", " NaN").replace(" 0.75", " NaN"), "missing: vllm:kv", id="NaN"
        ),
        pytest.param(
            EXPOSITION.replace(" 3.0", " 1.7e308").replace(" 4.0", " 1.7e308"),
            "missing: vllm:num",
            id="absurd",
        ),
        pytest.param(EXPOSITION.replace('"16"', '"auto"'), "block_size is 'auto'", id="text for a number"),
    ],
)
def test_what_is_missing_is_never_zero(text: str, want: str) -> None:
    """Each gap is named."""
    with pytest.raises(UnreadableMetricsError, match=want):
        reading_of(parse_exposition(text), time_seconds=0.0)


@given(st.text(max_size=200).map(lambda text: f"vllm:num_requests_waiting{text}"))
def test_hostile_text_is_refused_or_read(text: str) -> None:
    """No text makes anything but the one error."""
    try:
        parse_exposition(text)
    except UnreadableMetricsError:
        return


def reading(time_seconds: float, *, prompts: float, prompt_tokens: float) -> Reading:
    """Return a reading whose outputs are as many as its prompts, of 10 tokens each."""
    totals = Totals(prompt_tokens=prompt_tokens, prompts=prompts, output_tokens=10 * prompts, outputs=prompts)
    return Reading(
        time_seconds=time_seconds,
        kv_usage=0.5,
        waiting=0,
        running=0,
        num_gpu_blocks=10,
        block_size=16,
        totals=totals,
        model_names=frozenset(),
    )


KEY = ("ns", "pod")


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
