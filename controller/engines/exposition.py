"""The series of engines with their meanings and names in all releases, and the parser of pages.

Names are sample names, as in an exposition: with `_total`, `_sum`, `_count` and `_bucket`. If an engine
serves an old name next to its new one, the first one in the table is used.

The parser of the Prometheus text format takes time proportional to the square of the length of a line. A
tenant can serve a page with a single line as long as the page may be, or with nothing but lines that match,
so both are refused before parsing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

LONGEST_LINE_CHARACTERS: Final = 8192
"""The maximum length of a line that is parsed. Real ones have a few hundred characters."""

MOST_LINES: Final = 20_000
"""The maximum number of lines that are parsed. Sixteen engines in one pod have about two thousand."""

MOST_CHARACTERS: Final = 512 << 10
"""The maximum number of characters that are parsed, of all lines together. Those engines have half of it."""


class UnreadableMetricsError(Exception):
    """A response lacks required metrics, or is no metrics page at all; the message says what to do."""


def families_in(text: str, heads: tuple[str, ...]) -> list[Metric]:
    """Return the metric families in the lines that begin with one of the heads; values are floats.

    Raises UnreadableMetricsError for invalid text, and for lines that are too long or too many.
    """
    selected_text = _lines_of(text, heads)
    try:
        families = list(text_string_to_metric_families(selected_text))
        for family in families:
            # The parser returns integers of any size as such.
            family.samples = [sample._replace(value=float(sample.value)) for sample in family.samples]
    except (ValueError, IndexError, OverflowError) as error:  # the parser raises them by the defect
        raise UnreadableMetricsError(f"not a Prometheus exposition: {error}") from error
    return families


def _lines_of(text: str, heads: tuple[str, ...]) -> str:
    """Return the lines that begin with one of the heads; others, which are most, need not be parsed."""
    lines = [line for line in text.splitlines() if line.startswith(heads)]
    if len(lines) > MOST_LINES:
        raise UnreadableMetricsError(f"{len(lines)} lines are about its metrics, of at most {MOST_LINES}")
    for line in lines:
        if len(line) > LONGEST_LINE_CHARACTERS:
            raise UnreadableMetricsError(
                f"a line has {len(line)} characters, of at most {LONGEST_LINE_CHARACTERS}: {line[:40]}..."
            )
    selected_text = "\n".join(lines) + "\n"
    if len(selected_text) > MOST_CHARACTERS:
        raise UnreadableMetricsError(
            f"{len(selected_text)} characters are about its metrics, of at most {MOST_CHARACTERS}"
        )
    return selected_text


class EngineKind(StrEnum):
    """The kind of engine."""

    VLLM = "vLLM"
    SGLANG = "SGLang"


class Meaning(StrEnum):
    """The meaning of a series."""

    WAITING = "requests in the queue"
    RUNNING = "requests in the batch"
    KV_SIZE = "size of the KV cache"
    FIRST_TOKENS = "requests that got their first token"
    SECONDS_TO_FIRST = "sum of the times to first token"
    PROMPT_TOKENS = "prompt tokens processed"
    CACHED_PROMPT_TOKENS = "prompt tokens found in the prefix cache"
    COMPUTED_PROMPT_TOKENS = "prompt tokens that finished requests computed"
    FINISHED_PROMPT_TOKENS = "prompt tokens of finished requests"
    GENERATION_TOKENS = "tokens generated"
    FINISHED = "requests finished"
    SECONDS_BETWEEN = "sum of the times between tokens"
    INTER_TOKENS = "number of times between tokens"
    STEPS = "engine steps that yielded tokens"
    PROMPT_LENGTHS = "requests by prompt length"
    FIRST_TOKEN_TIMES = "requests by time to first token"  # noqa: S105 (no password)
    TOKEN_TIMES = "requests by mean time between tokens"  # noqa: S105 (no password)


@dataclass(frozen=True, slots=True)
class SeriesName:
    """One name of one series."""

    kind: EngineKind
    meaning: Meaning
    name: str
    since: str
    """Release that first served it, or one by which it existed; `unknown` if not established."""

    until: str = ""
    """First release known not to serve it by default; empty while the newest does."""


_V, _S = EngineKind.VLLM, EngineKind.SGLANG
_UNKNOWN: Final = "unknown"
_AT_THE_LATEST: Final = "0.4.6.post5"
_EARLY: Final = "before 0.4.6.post5"
"""Its documentation shows them next to time_per_output_token_seconds in one response of an engine."""

# vLLM: from the releases' own sources and deprecation notes (a name that is deprecated in X.Y is hidden in
# X.Y+1 and removed in X.Y+2). `0.4.0` stands where its documentation already lists the name.
# SGLang: serves metrics only with --enable-metrics, creates the series of a counter or histogram with its
# first event, and counts prompt and generated tokens when a request ends. Its documentation continued to list
# time_per_output_token_seconds after 0.4.6.post5 no longer served it.
SERIES: Final = (
    SeriesName(_V, Meaning.WAITING, "vllm:num_requests_waiting", "0.4.0"),
    SeriesName(_V, Meaning.RUNNING, "vllm:num_requests_running", "0.4.0"),
    SeriesName(_V, Meaning.KV_SIZE, "vllm:cache_config_info", "0.4.0"),
    SeriesName(_V, Meaning.FIRST_TOKENS, "vllm:time_to_first_token_seconds_count", "0.4.0"),
    SeriesName(_V, Meaning.SECONDS_TO_FIRST, "vllm:time_to_first_token_seconds_sum", "0.4.0"),
    SeriesName(_V, Meaning.PROMPT_TOKENS, "vllm:prompt_tokens_total", "0.4.0"),
    SeriesName(_V, Meaning.GENERATION_TOKENS, "vllm:generation_tokens_total", "0.4.0"),
    SeriesName(_V, Meaning.FINISHED, "vllm:request_success_total", _UNKNOWN),
    SeriesName(_V, Meaning.SECONDS_BETWEEN, "vllm:inter_token_latency_seconds_sum", "0.10.2"),
    SeriesName(_V, Meaning.SECONDS_BETWEEN, "vllm:time_per_output_token_seconds_sum", "0.4.0", "0.12"),
    SeriesName(_V, Meaning.INTER_TOKENS, "vllm:inter_token_latency_seconds_count", "0.10.2"),
    SeriesName(_V, Meaning.INTER_TOKENS, "vllm:time_per_output_token_seconds_count", "0.4.0", "0.12"),
    SeriesName(_V, Meaning.STEPS, "vllm:iteration_tokens_total_count", _UNKNOWN),
    SeriesName(_V, Meaning.PROMPT_LENGTHS, "vllm:request_prompt_tokens_bucket", _UNKNOWN),
    SeriesName(_V, Meaning.COMPUTED_PROMPT_TOKENS, "vllm:request_prefill_kv_computed_tokens_sum", _UNKNOWN),
    SeriesName(_V, Meaning.FINISHED_PROMPT_TOKENS, "vllm:request_prompt_tokens_sum", _UNKNOWN),
    SeriesName(_V, Meaning.FIRST_TOKEN_TIMES, "vllm:time_to_first_token_seconds_bucket", "0.4.0"),
    SeriesName(_V, Meaning.TOKEN_TIMES, "vllm:request_time_per_output_token_seconds_bucket", _UNKNOWN),
    SeriesName(_S, Meaning.WAITING, "sglang:num_queue_reqs", _EARLY),
    SeriesName(_S, Meaning.RUNNING, "sglang:num_running_reqs", _EARLY),
    SeriesName(_S, Meaning.KV_SIZE, "sglang:max_total_num_tokens", _UNKNOWN),
    SeriesName(_S, Meaning.FIRST_TOKENS, "sglang:time_to_first_token_seconds_count", _EARLY),
    SeriesName(_S, Meaning.SECONDS_TO_FIRST, "sglang:time_to_first_token_seconds_sum", _EARLY),
    SeriesName(_S, Meaning.PROMPT_TOKENS, "sglang:prompt_tokens_total", _EARLY),
    SeriesName(_S, Meaning.CACHED_PROMPT_TOKENS, "sglang:cached_tokens_total", _UNKNOWN),
    SeriesName(_S, Meaning.GENERATION_TOKENS, "sglang:generation_tokens_total", _EARLY),
    SeriesName(_S, Meaning.FINISHED, "sglang:num_requests_total", _UNKNOWN),
    SeriesName(_S, Meaning.SECONDS_BETWEEN, "sglang:inter_token_latency_seconds_sum", _UNKNOWN),
    SeriesName(
        _S, Meaning.SECONDS_BETWEEN, "sglang:time_per_output_token_seconds_sum", _EARLY, _AT_THE_LATEST
    ),
    SeriesName(_S, Meaning.INTER_TOKENS, "sglang:inter_token_latency_seconds_count", _UNKNOWN),
    SeriesName(
        _S, Meaning.INTER_TOKENS, "sglang:time_per_output_token_seconds_count", _EARLY, _AT_THE_LATEST
    ),
    SeriesName(_S, Meaning.PROMPT_LENGTHS, "sglang:prompt_tokens_histogram_bucket", _UNKNOWN),
    SeriesName(_S, Meaning.FIRST_TOKEN_TIMES, "sglang:time_to_first_token_seconds_bucket", _EARLY),
    SeriesName(_S, Meaning.TOKEN_TIMES, "sglang:inter_token_latency_seconds_bucket", _UNKNOWN),
)
"""All series that are read. SGLang serves prompt lengths only with --collect-tokens-histogram, and no times
between tokens by request: those of single tokens stand for them, which vary more.
"""

NAMES: Final = tuple(named.name for named in SERIES)
"""All names."""

SHARD_LABELS: Final = frozenset({"tp_rank", "pp_rank", "moe_ep_rank"})
"""Labels that distinguish the processes of one engine (SGLang with --enable-metrics-for-all-schedulers), all
of which report the same requests.
"""

PART_LABELS: Final = frozenset({"priority", "cache_source"})
"""Labels by which an engine divides a number (SGLang with --enable-priority-scheduling, and prefix caches of
several levels).
"""

TOTALS: Final = frozenset({"", "total"})
"""Values of these labels in the series with the undivided number. Prometheus drops empty labels."""

ENGINE_LABELS: Final = {EngineKind.VLLM: "engine", EngineKind.SGLANG: "dp_rank"}
"""The label that distinguishes the engines of one pod; aggregated series do not have it."""

INSTANCE: Final = "instance"
"""Label with the address that Prometheus scraped."""

PORT_LABELS: Final = frozenset({"container", "endpoint"})
"""Labels by which a Prometheus job names a port. Jobs differ in them even if they scrape the same address."""

EndpointLabels = frozenset[tuple[str, str]]
"""Label values that identify one of a pod's endpoints; empty if the pod itself was scraped."""

SIZE_LABELS: Final = ("kv_cache_size_tokens", "num_gpu_blocks", "block_size")
"""Labels of vLLM's info series. The first one is newer, and correct for models with several kinds of cache.
"""


def endpoint_of(labels: Mapping[str, str]) -> EndpointLabels:
    """Return the endpoint of a series: the address that was scraped, or else the names of its port."""
    names = {INSTANCE} if INSTANCE in labels else PORT_LABELS & labels.keys()
    return frozenset((name, labels[name]) for name in names)


def names_of(kind: EngineKind, meaning: Meaning) -> tuple[str, ...]:
    """Return the names of a series, in order of preference."""
    return tuple(named.name for named in SERIES if (named.kind, named.meaning) == (kind, meaning))


def kind_of(name: str) -> EngineKind:
    """Return the engine kind of a name in the table."""
    return next(named.kind for named in SERIES if named.name == name)
