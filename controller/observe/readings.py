"""What one engine says of itself, read from its vLLM series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

KV_USAGE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""Newer and older name of the share of the KV cache in use."""

WAITING: Final = "vllm:num_requests_waiting"
RUNNING: Final = "vllm:num_requests_running"
CACHE_CONFIG: Final = "vllm:cache_config_info"
COUNTERS: Final = (
    "vllm:request_prompt_tokens_sum",
    "vllm:request_prompt_tokens_count",
    "vllm:request_generation_tokens_sum",
    "vllm:request_generation_tokens_count",
)
"""Totals since the engine started, from which the mean lengths of late follow."""

_LARGEST: Final = 1e18

SERIES: Final = (*KV_USAGE, WAITING, RUNNING, CACHE_CONFIG, *COUNTERS)
"""All series that are read."""


class UnreadableMetricsError(Exception):
    """An engine's answer lacks what a reading needs, or is no metrics at all; the message says what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One sample of one series."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Counters since the engine started."""

    prompt_tokens: float
    prompts: float
    output_tokens: float
    outputs: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """State of one pod's engine at one moment; several engines in one pod count as one."""

    time_seconds: float
    kv_usage: float
    waiting: int
    running: int
    num_gpu_blocks: int
    block_size: int
    totals: Totals
    model_names: frozenset[str]


def parse_exposition(text: str) -> list[Series]:
    """Return the series that a reading needs from the text of `/metrics`.

    Raises UnreadableMetricsError for text that is no exposition. Lines of other series, which are most, are
    passed over before parsing.
    """
    wanted = "\n".join(line for line in text.splitlines() if line.startswith(SERIES)) + "\n"
    try:
        families = list(text_string_to_metric_families(wanted))
    except ValueError as error:
        raise UnreadableMetricsError(f"no Prometheus exposition: {error}") from error
    return [
        Series(name=sample.name, labels=sample.labels, value=float(sample.value))
        for family in families
        for sample in family.samples
        if sample.name in SERIES
    ]


def reading_of(series: Iterable[Series], *, time_seconds: float) -> Reading:
    """Return what a pod's series say together.

    Raises UnreadableMetricsError when one that matters is missing or not a number: missing is never zero.
    """
    by_name: dict[str, list[Series]] = {}
    for item in series:
        by_name.setdefault(item.name, []).append(item)
    usages = _values(by_name, KV_USAGE[0]) or _values(by_name, KV_USAGE[1])
    config = by_name.get(CACHE_CONFIG, [])
    missing = [name for name in (WAITING, RUNNING) if not _values(by_name, name)]
    missing += [] if usages else [KV_USAGE[0]]
    missing += [] if config else [CACHE_CONFIG]
    if missing:
        raise UnreadableMetricsError(f"missing: {', '.join(missing)}")
    return Reading(
        time_seconds=time_seconds,
        kv_usage=min(max(math.fsum(usages) / len(usages), 0.0), 1.0),
        waiting=round(math.fsum(_values(by_name, WAITING))),
        running=round(math.fsum(_values(by_name, RUNNING))),
        num_gpu_blocks=sum(_label(item, "num_gpu_blocks") for item in config),
        block_size=_label(config[0], "block_size"),
        totals=Totals(**_totals(by_name)),
        model_names=frozenset(
            item.labels["model_name"]
            for items in by_name.values()
            for item in items
            if "model_name" in item.labels
        ),
    )


def _totals(by_name: Mapping[str, list[Series]]) -> dict[str, float]:
    fields = ("prompt_tokens", "prompts", "output_tokens", "outputs")
    return {field: math.fsum(_values(by_name, name)) for field, name in zip(fields, COUNTERS, strict=True)}


def _values(by_name: Mapping[str, list[Series]], name: str) -> list[float]:
    """Return the values that are numbers of a size that anything here can mean."""
    return [item.value for item in by_name.get(name, []) if abs(item.value) < _LARGEST]


def _label(series: Series, name: str) -> int:
    text = series.labels.get(name, "")
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise UnreadableMetricsError(
            f"{CACHE_CONFIG}: label {name} is {text!r} and must be a positive number"
        )
    return int(text)
