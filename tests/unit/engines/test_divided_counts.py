"""Engines that report a number several times, one that no decision needs, or no tokens at all."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.engine_expositions import SGLANG, VLLM, without

from controller.engines.readings import Reading, Totals, parse_exposition, reading_of

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
