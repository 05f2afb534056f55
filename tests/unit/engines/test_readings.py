"""Parsing of vLLM and SGLang expositions to readings, and rejection of unusable ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engine_expositions import SGLANG, VLLM, without
from support.engine_totals import alone

from controller.engines.endpoints import exposed_in
from controller.engines.exposition import NAMES, SERIES, UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.readings import Reading, Totals, parse_exposition, reading_of

OLD = VLLM.replace("inter_token_latency", "time_per_output_token").replace(
    "cache_config_info{block", "cache_config_info{other"
)
SGLANG_COUNTERS = (
    "sglang:prompt",
    "sglang:cached",
    "sglang:generation",
    "sglang:num_requests",
    "sglang:time",
    "sglang:inter",
)


def read(text: str, *, time_seconds: float = 5.0) -> Reading:
    """Return the reading of an exposition."""
    return reading_of(parse_exposition(text), time_seconds=time_seconds)


def totals_of(reading: Reading) -> Totals:
    """Return the counters of a pod with one endpoint."""
    (part,) = reading.parts.values()
    return part.totals


def test_engines_of_one_pod_are_aggregated() -> None:
    """Queues, caches and counters are summed."""
    assert read(VLLM) == Reading(
        time_seconds=5.0,
        running=2,
        kv_tokens=3200,
        parts=alone(
            Totals(
                first_tokens=18,
                prompt_tokens=8000,
                generation_tokens=1600,
                finished=16,
                begun=18,
                ended=16,
                inter_token_seconds=16,
                inter_tokens=1582,
                prompt_lengths=((500, 1000, math.inf), (10, 16, 16)),
                first_token_seconds=2,
                examined_prompt_tokens=7100,
                computed_prompt_tokens=6000,
            ),
            waiting=7,
        ),
        model_names=frozenset({"m"}),
        engines=2,
    )


def test_the_processes_of_one_sglang_engine_are_counted_once() -> None:
    """Every rank of a tensor-parallel engine reports the same requests."""
    assert read(SGLANG) == Reading(
        time_seconds=5.0,
        running=4,
        kv_tokens=144_000,
        parts=alone(
            Totals(
                first_tokens=18,
                prompt_tokens=8000,
                generation_tokens=1600,
                finished=16,
                begun=16,
                ended=16,
                inter_token_seconds=16,
                inter_tokens=1582,
                first_token_seconds=2,
                examined_prompt_tokens=8000,
                computed_prompt_tokens=6500,
            ),
            waiting=2,
        ),
        model_names=frozenset({"m"}),
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(OLD, 16, id="the names before vLLM 0.10.2"),
        pytest.param(
            VLLM + 'vllm:time_per_output_token_seconds_sum{engine="0",model_name="m"} 99\n',
            16,
            id="an old name beside the new one is ignored",
        ),
        pytest.param(SGLANG.replace("inter_token_latency", "time_per_output_token"), 16, id="older SGLang"),
    ],
)
def test_old_series_names_give_the_same_reading(text: str, want: float) -> None:
    """Releases renamed series without changing their meaning."""
    assert totals_of(read(text)).inter_token_seconds == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(VLLM, 3200, id="the sum of blocks times block size"),
        pytest.param(
            VLLM.replace('info{block_size="16"', 'info{kv_cache_size_tokens="900",block_size="16"'),
            1800,
            id="the size in tokens takes precedence",
        ),
        pytest.param(
            VLLM.replace('info{block_size="16"', 'info{kv_cache_size_tokens="None",block_size="16"'),
            3200,
            id="the text None is ignored",
        ),
        pytest.param(VLLM.replace('block_size="16"', 'block_size="auto"'), None, id="text for a number"),
        pytest.param(VLLM.replace('blocks="100",engine="1"', 'blocks="0",engine="1"'), None, id="zero size"),
        pytest.param(without(VLLM, 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="1"'),
                     None, id="missing size"),
        pytest.param(without(SGLANG, "sglang:max_total"), None, id="an SGLang version without this series"),
    ],
)  # fmt: skip
def test_cache_size_is_read_in_tokens_or_is_unknown(text: str, want: int | None) -> None:
    """If it is unknown, the rest of the reading is kept."""
    assert read(text).kv_tokens == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            without(SGLANG, *SGLANG_COUNTERS), (0, 0, 0), id="no request yet"
        ),
        pytest.param(
            without(SGLANG, "sglang:prompt", "sglang:gen", "sglang:num_requests", "sglang:cached").replace(
                '_count{model_name="m"} 18.0', '_count{model_name="m"} 4.0'
            ),
            (4, 0, 0),
            id="the first requests are still running",
        ),
        pytest.param(without(SGLANG, "sglang:inter"), (18, 16, 1600), id="responses of one chunk only"),
    ],
)  # fmt: skip
def test_a_missing_sglang_counter_is_zero_if_it_had_no_event_yet(
    text: str, want: tuple[float, float, float]
) -> None:
    """SGLang creates a counter at its first event; the other series show whether there was one."""
    totals = totals_of(read(text))

    assert (totals.first_tokens, totals.finished, totals.generation_tokens) == want


def test_a_label_without_a_name_is_rejected() -> None:
    """The parser raises another exception for it than for other invalid text."""
    with pytest.raises(UnreadableMetricsError, match="not a Prometheus exposition"):
        read('vllm:num_requests_waiting{, ="x"} 1\n')


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", "no series of vLLM or SGLang", id="an empty response"),
        pytest.param("go_goroutines 7\n", "no series of vLLM or SGLang", id="another program"),
        pytest.param("vllm:num_requests_waiting{", "not a Prometheus exposition", id="an incomplete line"),
        pytest.param(VLLM + SGLANG, "of vLLM and of SGLang", id="two kinds of engines"),
        pytest.param(VLLM.replace(" 3.0", " NaN"), r"queue\) is nan", id="NaN for one of two engines"),
        pytest.param(
            VLLM.replace(" 3.0", " 1.7e308"), r"queue\) is 1.7e\+308", id="an implausibly large value"
        ),
        pytest.param(VLLM.replace(" 3.0", " -3.0"), r"queue\) is -3", id="a negative queue"),
        pytest.param(VLLM.replace(" 900.0", " +Inf"), r"generated\) is inf", id="an infinite counter"),
        pytest.param(VLLM.replace(" 900.0", " -1.0"), r"generated\) is -1", id="a negative counter"),
        pytest.param(
            VLLM + 'vllm:num_requests_waiting{model_name="m",engine="1"} 9\n',
            "waiting occurs twice",
            id="a duplicate series",
        ),
        pytest.param(
            without(VLLM, 'vllm:num_requests_running{engine="1"'),
            "missing: vllm:num_requests_running; use vLLM 0.8",
            id="a gauge of one engine only",
        ),
        pytest.param(
            without(VLLM, 'vllm:generation_tokens_total{engine="0"'),
            "missing: vllm:generation_tokens_total",
            id="a counter of one engine only",
        ),
        pytest.param(
            without(VLLM, "vllm:time_to", "vllm:inter"),
            "missing: vllm:time_to_first_token_seconds_count, vllm:time_to_first_token_seconds_sum,"
            " vllm:inter_token_latency_seconds_sum, vllm:inter_token_latency_seconds_count; use vLLM",
            id="no histograms",
        ),
        pytest.param(
            without(SGLANG, "sglang:time_to"),
            "missing: sglang:time_to_first_token_seconds_count",
            id="requests that ended without a first token",
        ),
        pytest.param(
            without(SGLANG, "sglang:num_requests_total"),
            "missing: sglang:num_requests_total; use SGLang",
            id="a counter that must have had an event",
        ),
    ],
)
def test_missing_or_invalid_series_are_rejected_and_not_taken_as_zero(text: str, want: str) -> None:
    """The error names the series, and the engine version that has it."""
    with pytest.raises(UnreadableMetricsError, match=want):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(without(VLLM, "vllm:request_prompt_tokens"), id="no histogram"),
        pytest.param(VLLM.replace('le="+Inf",engine="1"', 'le="2000.0",engine="1"'), id="no +Inf bucket"),
        pytest.param(VLLM.replace('le="500.0",engine="1"', 'le="NaN",engine="1"'), id="an invalid bound"),
        pytest.param(VLLM.replace('le="500.0",engine="1",model_name="m"} 6', 'le="500.0",engine="1",'
                                  'model_name="m"} 60'), id="decreasing counts"),
    ],
)  # fmt: skip
def test_an_invalid_histogram_of_prompt_lengths_is_omitted(text: str) -> None:
    """The rest of the reading is kept."""
    assert totals_of(read(text)).prompt_lengths == ((), ())


def test_histograms_with_different_buckets_are_summed_at_common_bounds() -> None:
    """Cumulative counts can be added only at the same bound."""
    text = VLLM.replace('le="500.0",engine="1"', 'le="700.0",engine="1"')

    assert totals_of(read(text)).prompt_lengths == ((1000, math.inf), (16, 16))


def scraped(text: str, instance: str) -> list[Series]:
    """Return the series of one endpoint as Prometheus has them."""
    return [
        replace(item, labels={**item.labels, "instance": instance, "container": "engine"})
        for item in parse_exposition(text)
    ]


def test_counters_of_each_endpoint_of_a_pod_are_kept_separately() -> None:
    """Gauges are summed."""
    other = VLLM.replace(" 5000.0", " 7000.0")
    reading = reading_of([*scraped(VLLM, "ip:1"), *scraped(other, "ip:2")], time_seconds=5.0)

    prompts = {dict(key)["instance"]: part.totals.prompt_tokens for key, part in reading.parts.items()}
    assert prompts == {"ip:1": 8000, "ip:2": 10_000}
    assert (reading.waiting, reading.running, reading.kv_tokens) == (14, 4, 6400)


@pytest.mark.parametrize("missing", ["vllm:num_requests_waiting", "vllm:prompt_tokens_total"])
def test_a_series_missing_at_one_of_two_endpoints_is_rejected(missing: str) -> None:
    """A partial sum would be wrong."""
    with pytest.raises(UnreadableMetricsError, match=f"missing: {missing}"):
        reading_of([*scraped(VLLM, "ip:1"), *scraped(without(VLLM, missing), "ip:2")], time_seconds=5.0)


def test_a_timestamp_of_a_series_gives_the_time_of_the_reading() -> None:
    """The oldest timestamp counts; one in the future is replaced by the current time."""
    text = VLLM.replace('waiting{engine="0",model_name="m"} 3.0', 'waiting{engine="0",model_name="m"} 3 2500')

    assert read(text).time_seconds == 2.5
    assert read(text, time_seconds=1.0).time_seconds == 1.0


def test_every_series_name_is_unique_in_the_table() -> None:
    """The first match determines the engine kind of a series."""
    assert len(set(NAMES)) == len(NAMES)
    assert all(named.since for named in SERIES)


@given(st.text(max_size=200).map(lambda text: f"vllm:num_requests_waiting{text}"))
def test_arbitrary_text_is_parsed_or_rejected(text: str) -> None:
    """No text raises any other exception."""
    try:
        parse_exposition(text)
    except UnreadableMetricsError:
        return


HOSTILE = {
    "many labels": ",".join(f'l{number}="1"' for number in range(180_000)),
    "many escapes": 'l="' + '\\"' * 600_000 + '"',
}


@pytest.mark.parametrize("labels", HOSTILE.values(), ids=HOSTILE.keys())
def test_an_overlong_line_is_rejected_before_parsing(labels: str) -> None:
    """Parsing would take half a minute each; lines of other series are ignored."""
    line = f"vllm:num_requests_waiting{{{labels}}} 1"
    with pytest.raises(UnreadableMetricsError, match=f"a line has {len(line)} characters, of at most 8192"):
        parse_exposition(line)
    with pytest.raises(UnreadableMetricsError, match="a line has"):
        exposed_in(line, {"vllm:num_requests_waiting"})
    assert not parse_exposition(f"other{{{labels}}} 1")


VALUES = st.one_of(
    st.floats(), st.sampled_from([0.0, 1.0, 0.5, -1.0, 1e308, math.nan, math.inf]), st.floats(0, 100)
)
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "engine": st.sampled_from(["0", "1"]),
        "le": st.sampled_from(["1.0", "+Inf", "x"]),
        "num_gpu_blocks": st.sampled_from(["1", "x", "9" * 30]),
        "block_size": st.sampled_from(["16", ""]),
        "tp_rank": st.sampled_from(["0", "1"]),
    },
)
GARBAGE = st.builds(Series, name=st.sampled_from(NAMES), labels=LABELS, value=VALUES)


@given(st.lists(GARBAGE, max_size=12), st.sampled_from([VLLM, SGLANG, ""]))
def test_random_series_give_plausible_values_or_are_rejected(garbage: list[Series], text: str) -> None:
    """Values are finite and within the bounds of an engine's metrics."""
    try:
        reading = reading_of([*parse_exposition(text), *garbage], time_seconds=5.0)
    except UnreadableMetricsError:
        return
    totals = totals_of(reading)
    counters = [
        totals.first_tokens,
        totals.prompt_tokens,
        totals.generation_tokens,
        totals.finished,
        totals.begun,
        totals.inter_token_seconds,
        totals.inter_tokens,
        totals.first_token_seconds,
        *totals.prompt_lengths[1],
    ]
    assert 0 <= reading.waiting <= 1e7
    assert 0 <= reading.running <= 1e7
    assert reading.kv_tokens is None or reading.kv_tokens > 0
    assert all(0 <= value <= 1e17 for value in counters)
    assert 0 <= (totals.computed_prompt_tokens or 0.0) <= 1e17
    assert reading.time_seconds <= 5.0


@given(st.data())
def test_one_invalid_required_value_makes_the_reading_invalid(data: st.DataObject) -> None:
    """It is not left out of a sum."""
    series = parse_exposition(without(VLLM, "vllm:cache", "vllm:request_pr"))
    position = data.draw(st.integers(0, len(series) - 1))
    bad = data.draw(st.sampled_from([math.nan, math.inf, -math.inf, -1.0, 1e300]))
    spoiled = series[position]
    series[position] = Series(name=spoiled.name, labels=spoiled.labels, value=bad)

    with pytest.raises(UnreadableMetricsError, match=spoiled.name):
        reading_of(series, time_seconds=0.0)
