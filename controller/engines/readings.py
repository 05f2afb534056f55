"""Build a reading of one pod's engines from their series.

An untrustworthy number invalidates the reading: missing data is never zero, and an engine with invalid data
is not left out of the sum of a pod's engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.engines.exposition import NAMES, SIZE_LABELS, EndpointLabels, EngineKind, Meaning, families_in
from controller.engines.metrics import MOST_COUNTED, EngineMetrics, Series, has_duplicates
from controller.sizing.records import NO_HISTOGRAM, Histogram

_LARGEST_CACHE_TOKENS: Final = 10**9
_MOST_DIGITS: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Counters since the start of the engines behind one endpoint, summed over these engines."""

    first_tokens: float
    """Requests that got their first token."""

    prompt_tokens: float
    """Prompt tokens of finished prefills; SGLang counts them when the request ends."""

    generation_tokens: float
    finished: float
    """Requests that ended; vLLM does not count those that clients aborted."""

    begun: float
    """Requests whose prompt tokens were counted."""

    ended: float
    """Requests all of whose generated tokens were counted; it decreases while prompts are in progress."""

    inter_token_seconds: float
    """Sum of the times between consecutive tokens of a request, in seconds."""

    inter_tokens: float
    """Tokens that came after such times: several with each, if a speculative step had several accepted."""

    steps: float | None = None
    """Steps of the engines; None if they do not report them."""

    prompt_lengths: Histogram = NO_HISTOGRAM
    first_token_times: Histogram = NO_HISTOGRAM
    token_times: Histogram = NO_HISTOGRAM

    first_token_seconds: float
    examined_prompt_tokens: float | None = None
    """Prompt tokens of finished requests; None if the engine does not say how many of them were computed.
    vLLM does not count requests that clients aborted."""

    computed_prompt_tokens: float | None = None
    """Those of them that were not found in a cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointReading:
    """The data of one endpoint of a pod. Endpoints fail and restart, and so are counted, individually."""

    waiting: int
    totals: Totals


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The state of one pod's engines at one time; several engines in one pod are combined."""

    time_seconds: float
    running: int
    kv_tokens: int | None
    """Size of the KV cache in tokens; None if the engine does not report it."""

    parts: Mapping[EndpointLabels, EndpointReading]
    model_names: frozenset[str]
    engines: int = 1
    """Number of engines, each with a batch of its own: more than one with data parallelism."""

    @property
    def waiting(self) -> int:
        """Requests in the queues of all engines."""
        return sum(part.waiting for part in self.parts.values())


def parse_exposition(text: str) -> list[Series]:
    """Return the series that a reading needs from the text of `/metrics`.

    Raises UnreadableMetricsError for invalid text.
    """
    return [
        Series(
            name=sample.name,
            labels=sample.labels,
            value=sample.value,
            time_seconds=None if sample.timestamp is None else float(sample.timestamp),
        )
        for family in families_in(text, NAMES)
        for sample in family.samples
        if sample.name in NAMES
    ]


def reading_of(series: Iterable[Series], *, time_seconds: float) -> Reading:
    """Return the reading of a pod's series; those without a timestamp of their own are from `time_seconds`.

    Raises UnreadableMetricsError when a required series is missing, is there twice, or has a value that is
    impossible for an engine.
    """
    metrics = EngineMetrics.of(series)
    parts = {endpoint: _part(one) for endpoint, one in metrics.by_endpoint().items()}
    return Reading(
        time_seconds=metrics.time_seconds(time_seconds),
        running=metrics.requests(Meaning.RUNNING),
        kv_tokens=_kv_tokens(metrics),
        parts=parts,
        model_names=metrics.model_names(),
        engines=metrics.engine_count(),
    )


def _part(metrics: EngineMetrics) -> EndpointReading:
    gauges = (Meaning.WAITING, Meaning.RUNNING)
    metrics.refuse_missing([meaning for meaning in gauges if meaning not in metrics.by_meaning])
    metrics.refuse_partial(gauges)
    totals = _totals(metrics, running=metrics.requests(Meaning.RUNNING))
    return EndpointReading(waiting=metrics.requests(Meaning.WAITING), totals=totals)


def _totals(metrics: EngineMetrics, *, running: int) -> Totals:
    names = {
        "first_tokens": Meaning.FIRST_TOKENS,
        "first_token_seconds": Meaning.SECONDS_TO_FIRST,
        "prompt_tokens": Meaning.PROMPT_TOKENS,
        "generation_tokens": Meaning.GENERATION_TOKENS,
        "finished": Meaning.FINISHED,
        "inter_token_seconds": Meaning.SECONDS_BETWEEN,
        "inter_tokens": Meaning.INTER_TOKENS,
    }
    values = {meaning: metrics.total(meaning) for meaning in names.values()}
    if metrics.kind is EngineKind.SGLANG:
        values = _with_unborn(values, running=running)
    elif _none_of(values, _DECODED):  # a pooling model decodes nothing
        values |= dict.fromkeys(_DECODED, 0.0)
    metrics.refuse_missing([meaning for meaning, value in values.items() if value is None])
    metrics.refuse_partial([Meaning.WAITING, *values])
    counted = {field: values[meaning] or 0.0 for field, meaning in names.items()}
    begun = ended = counted["finished"]  # SGLang counts tokens when a request ends
    if metrics.kind is EngineKind.VLLM:
        begun = counted["first_tokens"]
        ended = begun - running
        # vLLM observes one time per step and request. SGLang counts every token.
        counted["inter_tokens"] = max(counted["inter_tokens"], counted["generation_tokens"] - begun)
    if not counted["inter_tokens"] and counted["generation_tokens"] <= counted["first_tokens"]:
        # Requests have one result each, as those of pooling models: it is their only token.
        counted["generation_tokens"] = counted["finished"]
    examined, computed = _computed_tokens(metrics, counted["prompt_tokens"])
    return Totals(
        **counted,
        begun=begun,
        ended=ended,
        steps=metrics.optional(Meaning.STEPS),
        prompt_lengths=_histogram(metrics, Meaning.PROMPT_LENGTHS),
        first_token_times=_histogram(metrics, Meaning.FIRST_TOKEN_TIMES),
        token_times=_histogram(metrics, Meaning.TOKEN_TIMES),
        examined_prompt_tokens=examined,
        computed_prompt_tokens=computed,
    )


_BEGUN: Final = (Meaning.FIRST_TOKENS, Meaning.SECONDS_TO_FIRST)
_ENDED: Final = (Meaning.PROMPT_TOKENS, Meaning.GENERATION_TOKENS, Meaning.FINISHED)
_BETWEEN: Final = (Meaning.SECONDS_BETWEEN, Meaning.INTER_TOKENS)
_DECODED: Final = (Meaning.GENERATION_TOKENS, *_BETWEEN)


def _with_unborn(values: Mapping[Meaning, float | None], *, running: int) -> dict[Meaning, float | None]:
    """Return the counters with zeros for those that await their first event, if the others prove it.

    Without a first token, nothing has ended. While nothing has ended, no more requests have begun than are
    running. Times between tokens are missing while every response came in one piece.
    """
    counters = dict(values)
    if _none_of(counters, _BEGUN) and _none_of(counters, _ENDED) and _none_of(counters, _BETWEEN):
        return dict.fromkeys(counters, 0.0)
    if _none_of(counters, _ENDED) and (counters[Meaning.FIRST_TOKENS] or 0.0) <= running:
        counters |= dict.fromkeys(_ENDED, 0.0)
    if _none_of(counters, _BETWEEN):
        counters |= dict.fromkeys(_BETWEEN, 0.0)
    return counters


def _none_of(values: Mapping[Meaning, float | None], meanings: Sequence[Meaning]) -> bool:
    return all(values[meaning] is None for meaning in meanings)


def _computed_tokens(metrics: EngineMetrics, prompt_tokens: float) -> tuple[float | None, float | None]:
    """Return the prompt tokens of finished requests, and those of them that were computed, or None twice."""
    # vLLM's counters of hits are not used: a waiting request without room in the cache counts in every step.
    if metrics.kind is EngineKind.VLLM:
        examined = metrics.optional(Meaning.FINISHED_PROMPT_TOKENS)
        computed = metrics.optional(Meaning.COMPUTED_PROMPT_TOKENS)
    else:
        cached = metrics.optional(Meaning.CACHED_PROMPT_TOKENS)
        examined, computed = prompt_tokens, None if cached is None else prompt_tokens - cached
    is_known = examined is not None and computed is not None and 0 <= computed <= examined
    return (examined, computed) if is_known else (None, None)


def _histogram(metrics: EngineMetrics, meaning: Meaning) -> Histogram:
    """Return the buckets that all engines have, summed; empty if they are not cumulative counts."""
    engines: dict[frozenset[tuple[str, str]], dict[float, float]] = {}
    for item in metrics.by_meaning.get(meaning, ()):
        bound = _parse_bound(item.labels.get("le", ""))
        others = frozenset(pair for pair in item.labels.items() if pair[0] != "le")
        buckets = engines.setdefault(others, {})
        if bound is None or bound in buckets or not 0 <= item.value <= MOST_COUNTED:
            return NO_HISTOGRAM
        buckets[bound] = item.value
    if not engines or not all(_is_cumulative(buckets) for buckets in engines.values()):
        return NO_HISTOGRAM
    bounds = sorted(set.intersection(*(set(buckets) for buckets in engines.values())))
    counts = [math.fsum(buckets[bound] for buckets in engines.values()) for bound in bounds]
    return tuple(bounds), tuple(counts)


def _parse_bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return bound if bound >= 0 else None


def _is_cumulative(buckets: Mapping[float, float]) -> bool:
    counts = [count for _, count in sorted(buckets.items())]
    return math.inf in buckets and counts == sorted(counts)


def _kv_tokens(metrics: EngineMetrics) -> int | None:
    """Return the total size of the KV caches; None unless every engine reports its own."""
    series = metrics.by_meaning.get(Meaning.KV_SIZE, ())
    sizes = [
        _labelled_size(item) if metrics.kind is EngineKind.VLLM else _whole(item.value) for item in series
    ]
    known = [size for size in sizes if size is not None]
    is_whole = (
        len(known) == len(sizes)
        and not has_duplicates(series)
        and metrics.engines(Meaning.KV_SIZE) in (metrics.engines(Meaning.WAITING), frozenset())
    )
    return sum(known) if is_whole and 0 < sum(known) <= _LARGEST_CACHE_TOKENS else None


def _labelled_size(item: Series) -> int | None:
    tokens, blocks, size = (_digits(item.labels.get(name, "")) for name in SIZE_LABELS)
    if tokens is None and blocks is not None and size is not None:
        tokens = blocks * size
    return tokens if tokens is not None and tokens <= _LARGEST_CACHE_TOKENS else None


def _digits(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) or None if is_number else None


def _whole(value: float) -> int | None:
    return round(value) if 1 <= value <= _LARGEST_CACHE_TOKENS else None
