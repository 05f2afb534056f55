"""Pages of engines with divided numbers, with counters by other rules, and of other kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from aiohttp import web
from support.engine_expositions import SGLANG, VLLM, without
from support.served import LOOPBACK, served, serving_pod

from controller.engines.metrics import no_engine
from controller.engines.readings import Reading, Totals, parse_exposition, reading_of
from controller.engines.scraping import Scraper

CASES: Final = Path(__file__).parents[3].parent / "shared" / "cases"
"""Reported inputs, which are not available on every machine."""


def read(text: str) -> Reading:
    """Return the reading of an exposition."""
    return reading_of(parse_exposition(text), time_seconds=5.0)


def totals_of(text: str) -> Totals:
    """Return the counters in an exposition."""
    (part,) = read(text).parts.values()
    return part.totals


def gauges(*labels: str, running: int, waiting: int) -> str:
    """Return the two gauges of SGLang with the same values for each set of labels."""
    return "".join(
        f"sglang:num_running_reqs{{{item}}} {running}\nsglang:num_queue_reqs{{{item}}} {waiting}\n"
        for item in labels
    )


COUNTERS: Final = without(SGLANG, "sglang:num_running", "sglang:num_queue")
TOTAL: Final = gauges('priority=""', running=10, waiting=4)
PARTS: Final = gauges('priority="0"', running=6, waiting=1) + gauges('priority="9"', running=4, waiting=3)

COUNTED: Final = {
    "a total and its parts": (TOTAL + PARTS, (10, 4, 1)),
    "a total without the empty label, as Prometheus stores it": (
        gauges("", running=10, waiting=4) + PARTS,
        (10, 4, 1),
    ),
    "parts without a total": (PARTS, (10, 4, 1)),
    "a total alone": (TOTAL, (10, 4, 1)),
    "parts of two engines, with their totals": (
        "".join((TOTAL + PARTS).replace("{", f'{{dp_rank="{rank}",') for rank in "01"),
        (20, 8, 2),
    ),
    "parts of two engines, without totals": (
        "".join(PARTS.replace("{", f'{{dp_rank="{rank}",') for rank in "01"),
        (20, 8, 2),
    ),
    "the same parts in each process of one engine": (
        "".join(PARTS.replace("{", f'{{tp_rank="{rank}",') for rank in "01"),
        (10, 4, 1),
    ),
    "two models in one engine": (
        gauges('model_name="m"', 'model_name="n"', running=5, waiting=2),
        (10, 4, 1),
    ),
}


@pytest.mark.parametrize(("text", "want"), COUNTED.values(), ids=COUNTED.keys())
def test_requests_are_counted_once_and_engines_by_rank(text: str, want: tuple[int, int, int]) -> None:
    """A label can divide a number into parts, whose sum the engine reports as well."""
    reading = read(text + COUNTERS)

    assert (reading.running, reading.waiting, reading.engines) == want


def test_cached_tokens_are_counted_once() -> None:
    """Caches of several levels are reported one by one, and together."""
    levels = "".join(
        f'sglang:cached_tokens_total{{model_name="m",cache_source="{source}"}} {tokens}\n'
        for source, tokens in (("device", 1000), ("host", 500), ("total", 1500))
    )

    assert totals_of(without(SGLANG, "sglang:cached") + levels) == totals_of(SGLANG)


NEGATIVE: Final = VLLM.replace('usage_perc{engine="0",model_name="m"} 0.25', 'usage_perc{engine="0"} -0.3875')
INFO: Final = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="0"} 1.0\n'
UNUSED: Final = {
    "a negative use of the KV cache": (NEGATIVE, 3200),
    "no use of the KV cache": (without(VLLM, "vllm:kv_cache_usage"), 3200),
    "the size of a cache twice": (VLLM + INFO, None),
    "steps that are not a number": (VLLM + 'vllm:iteration_tokens_total_count{engine="0"} NaN\n', 3200),
}


@pytest.mark.parametrize(("text", "want"), UNUSED.values(), ids=UNUSED.keys())
def test_a_value_that_no_decision_needs_never_invalidates_a_reading(text: str, want: int | None) -> None:
    """The rest of the reading is complete."""
    reading = read(text)

    assert (reading.running, reading.waiting, reading.kv_tokens) == (2, 7, want)


def zeroed(text: str, *names: str) -> str:
    """Return an exposition whose series of these names are 0."""
    lines = [
        f"{line.rsplit(' ', 1)[0]} 0.0" if line.startswith(names) else line for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


ONE_RESULT: Final = {
    "a pooling model of vLLM": (zeroed(VLLM, "vllm:generation", "vllm:inter"), (16, 16, 0)),
    "a pooling model without series of decoding": (
        without(VLLM, "vllm:generation", "vllm:inter"),
        (16, 16, 0),
    ),
    "answers of one token": (
        zeroed(VLLM, "vllm:inter").replace(" 900.0", " 10.0").replace(" 700.0", " 8.0"),
        (16, 16, 0),
    ),
    "a pooling model of SGLang, which creates series with their first event": (
        zeroed(without(SGLANG, "sglang:inter"), "sglang:generation"),
        (16, 16, 0),
    ),
    "answers that come in one piece have several tokens": (without(SGLANG, "sglang:inter"), (1600, 16, 0)),
}


@pytest.mark.parametrize(("text", "want"), ONE_RESULT.values(), ids=ONE_RESULT.keys())
def test_the_only_result_of_a_request_is_a_token(text: str, want: tuple[float, float]) -> None:
    """Requests of pooling models have no times between tokens."""
    totals = totals_of(text)

    assert (totals.generation_tokens, totals.finished, totals.inter_tokens) == want


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported inputs are not available")
@pytest.mark.parametrize(
    "name",
    [
        "sglang-priority/metrics.txt",
        "sglang-priority/through-prometheus.txt",
        "unused-kv-refuses/metrics.txt",
    ],
)
def test_reported_pages_are_read(name: str) -> None:
    """They have ten running and four waiting requests in one engine."""
    reading = read((CASES / name).read_text(encoding="utf-8"))

    assert (reading.running, reading.waiting, reading.engines) == (10, 4, 1)


def counted(text: str) -> Totals:
    """Return the counters in an exposition."""
    (part,) = reading_of(parse_exposition(text), time_seconds=5.0).parts.values()
    return part.totals


def test_a_step_of_vllm_that_yields_several_tokens_counts_with_all_of_them() -> None:
    """With speculative decoding, the time between two tokens is that of a step divided by its tokens."""
    line = 'vllm:generation_tokens_total{engine="0",model_name="m"}'
    speculative = VLLM.replace(f"{line} 900.0", f"{line} 2680.0")

    totals = counted(speculative)

    assert totals.inter_tokens == (2680 - 10) + (700 - 8)
    assert totals.inter_token_seconds == 16


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(VLLM, (7100, 6000), id="vLLM: of finished requests, without those that were aborted"),
        pytest.param(without(VLLM, "vllm:request_prefill"), (None, None), id="vLLM before 0.13"),
        pytest.param(SGLANG, (8000, 6500), id="SGLang"),
        pytest.param(without(SGLANG, "sglang:cached"), (None, None), id="SGLang before the first hit"),
    ],
)
def test_prompt_tokens_found_in_a_cache_are_not_computed(
    text: str, want: tuple[float | None, float | None]
) -> None:
    """If an engine does not report them, all tokens count as computed."""
    totals = counted(text)

    assert (totals.examined_prompt_tokens, totals.computed_prompt_tokens) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(VLLM, (18, 18 - 2), id="vLLM: 18 got a first token, 2 are running"),
        pytest.param(
            without(VLLM, 'vllm:request_success_total{engine="1"')
            + 'vllm:request_success_total{engine="1",model_name="m",finished_reason="stop"} 0.0\n',
            (18, 18 - 2),
            id="vLLM does not count aborted requests as finished",
        ),
        pytest.param(SGLANG, (16, 16), id="SGLang counts the tokens of finished requests"),
    ],
)
def test_requests_begin_and_end_when_their_tokens_are_counted(text: str, want: tuple[float, float]) -> None:
    """Mean lengths are tokens divided by these numbers."""
    totals = counted(text)

    assert (totals.begun, totals.ended) == want


PAGES = {
    "vLLM in Ray Serve": (
        'ray_node_cpu 4\nray_vllm_num_requests_running{WorkerId="w",engine="0"} 1\n',
        "metrics of vLLM in Ray Serve",
    ),
    "Text Generation Inference": ("tgi_request_count 7\n", "metrics of Text Generation Inference"),
    "Text Embeddings Inference": ("te_request_count 7\n", "metrics of Text Embeddings Inference"),
    "llama.cpp": ("# TYPE x gauge\nllamacpp:requests_processing 1\n", "metrics of llama.cpp"),
    "vLLM without its own metrics": (
        "python_info 1\nhttp_requests_total 7\n",
        "no series of vLLM or SGLang: name the container port of the engine `metrics` or `http`, start vLLM"
        " without --disable-log-stats",
    ),
    "a name within another one": ("my_tgi_count 7\n", "no series of vLLM or SGLang"),
}


@pytest.mark.parametrize(("text", "want"), PAGES.values(), ids=PAGES.keys())
def test_the_engine_of_a_page_is_named(text: str, want: str) -> None:
    """It cannot be read, but the message says what it is."""
    assert no_engine(text).startswith(want)


async def test_a_pod_with_another_engine_is_silent_and_named() -> None:
    """Its own name is in the reason."""

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text="tgi_request_count 7\n")

    async with served(page) as port, Scraper(LOOPBACK) as scraper:
        scraped = await scraper.scrape([serving_pod(port)])

    assert "metrics of Text Generation Inference" in scraped.failures["ns", "engine"]
