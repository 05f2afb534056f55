"""The series of one pod by meaning, with validation; or the name of an engine of another kind.

An untrustworthy number is an error: no engine is left out of the sum of a pod's engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.engines.exposition import (
    ENGINE_LABELS,
    NAMES,
    PART_LABELS,
    SHARD_LABELS,
    TOTALS,
    EndpointLabels,
    EngineKind,
    Meaning,
    UnreadableMetricsError,
    endpoint_of,
    kind_of,
    names_of,
)

_MOST_REQUESTS: Final = 1e7
_OLDEST_SECONDS: Final = 86_400.0
MOST_COUNTED: Final = 1e15
"""Maximum of a counter: as tokens, three centuries at 100,000 per second."""

_REMEDY: Final = {
    EngineKind.VLLM: "use vLLM 0.8 or newer, and start it without --disable-log-stats",
    EngineKind.SGLANG: "use SGLang 0.4.6 or newer",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One sample of one series."""

    name: str
    labels: Mapping[str, str]
    value: float
    time_seconds: float | None = None
    """Time of the sample, if its source reports it."""


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """The series of one pod, by meaning."""

    kind: EngineKind
    by_meaning: Mapping[Meaning, Sequence[Series]]

    @classmethod
    def of(cls, series: Iterable[Series]) -> EngineMetrics:
        """Group series by meaning; for each meaning the first of its names that exists is used.

        Raises UnreadableMetricsError unless the series are of exactly one kind of engine.
        """
        by_name: dict[str, list[Series]] = {}
        for item in series:
            by_name.setdefault(item.name, []).append(item)
        kinds = sorted({kind_of(name) for name in by_name if name in NAMES})
        if not kinds:
            raise UnreadableMetricsError(f"no series of vLLM or SGLang: {NO_SERIES}")
        if len(kinds) > 1:
            raise UnreadableMetricsError("series of vLLM and of SGLang in one pod: only one of them is read")
        by_meaning: dict[Meaning, Sequence[Series]] = {}
        for meaning in Meaning:
            name = next((name for name in names_of(kinds[0], meaning) if name in by_name), None)
            if name is not None:
                by_meaning[meaning] = _without_parts(_of_one_shard(by_name[name]))
        return cls(kinds[0], by_meaning)

    def by_endpoint(self) -> Mapping[EndpointLabels, EngineMetrics]:
        """Return the series of each endpoint of the pod, which are scraped, and restart, together."""
        grouped: dict[EndpointLabels, dict[Meaning, list[Series]]] = {}
        for meaning, series in self.by_meaning.items():
            for item in series:
                grouped.setdefault(endpoint_of(item.labels), {}).setdefault(meaning, []).append(item)
        return {endpoint: EngineMetrics(self.kind, by_meaning) for endpoint, by_meaning in grouped.items()}

    def values(self, meaning: Meaning, *, most: float = MOST_COUNTED) -> list[float]:
        """Return the values of a series, one for each engine; empty if it is missing."""
        series = self.by_meaning.get(meaning, ())
        if has_duplicates(series):
            raise UnreadableMetricsError(f"{series[0].name} occurs twice with the same labels")
        for item in series:
            if not 0 <= item.value <= most:
                raise UnreadableMetricsError(
                    f"{item.name} ({meaning}) is {item.value:g}: no number from 0 to {most:g}"
                )
        return [item.value for item in series]

    def requests(self, meaning: Meaning) -> int:
        """Return the number of requests in a gauge, summed over all engines; 0 if it is missing."""
        count = math.fsum(self.values(meaning, most=_MOST_REQUESTS))
        if count > _MOST_REQUESTS:
            raise UnreadableMetricsError(f"more than {_MOST_REQUESTS:g} {meaning}")
        return round(count)

    def total(self, meaning: Meaning) -> float | None:
        """Return the sum over the engines; None if the series is missing."""
        values = self.values(meaning)
        return math.fsum(values) if values else None

    def optional(self, meaning: Meaning) -> float | None:
        """Return the sum of an optional series; None if it is missing or invalid."""
        try:
            return self.total(meaning)
        except UnreadableMetricsError:
            return None

    def engines(self, *meanings: Meaning) -> frozenset[str]:
        """Return the engine names in series; empty if they have no engine label."""
        label = ENGINE_LABELS[self.kind]
        series = [item for meaning in meanings for item in self.by_meaning.get(meaning, ())]
        return frozenset(item.labels[label] for item in series if label in item.labels)

    def engine_count(self) -> int:
        """Return the number of engines, by endpoint and rank: an engine can have several series of a kind."""
        label = ENGINE_LABELS[self.kind]
        series = self.by_meaning.get(Meaning.WAITING, ())
        return len({(endpoint_of(item.labels), item.labels.get(label)) for item in series})

    def refuse_partial(self, meanings: Sequence[Meaning]) -> None:
        """Raise UnreadableMetricsError if an engine lacks a series that another engine of the pod has."""
        everyone = self.engines(*meanings)
        self.refuse_missing([item for item in meanings if self.engines(item) not in (everyone, frozenset())])

    def refuse_missing(self, meanings: Sequence[Meaning]) -> None:
        """Raise UnreadableMetricsError for missing series, if any."""
        if meanings:
            names = ", ".join(names_of(self.kind, meaning)[0] for meaning in meanings)
            raise UnreadableMetricsError(f"missing: {names}; {_REMEDY[self.kind]}")

    def time_seconds(self, asked_seconds: float) -> float:
        """Return the time of the oldest load gauge, at the latest `asked_seconds`."""
        gauges = (Meaning.WAITING, Meaning.RUNNING)
        sample_times = [item.time_seconds for meaning in gauges for item in self.by_meaning[meaning]]
        oldest = min([asked_seconds, *(time for time in sample_times if time is not None)])
        if not asked_seconds - oldest <= _OLDEST_SECONDS:
            raise UnreadableMetricsError("its newest samples are more than a day old")
        return oldest

    def model_names(self) -> frozenset[str]:
        """Return the models that the series name."""
        return frozenset(
            item.labels["model_name"]
            for items in self.by_meaning.values()
            for item in items
            if "model_name" in item.labels
        )


def _of_one_shard(series: Sequence[Series]) -> Sequence[Series]:
    """Return the series of the first process of each engine."""
    if not any(SHARD_LABELS & item.labels.keys() for item in series):
        return series
    ranks = [tuple(item.labels.get(name, "") for name in sorted(SHARD_LABELS)) for item in series]
    engines = [frozenset(item.labels.items() - _shard(item)) for item in series]
    first: dict[frozenset[tuple[str, str]], tuple[str, ...]] = {}
    for engine, rank in zip(engines, ranks, strict=True):
        first[engine] = min(first.get(engine, rank), rank)
    return [item for item, engine, rank in zip(series, engines, ranks, strict=True) if rank == first[engine]]


def _without_parts(series: Sequence[Series]) -> Sequence[Series]:
    """Return the series without the parts of a number whose total is a series, too."""
    if not any(PART_LABELS & item.labels.keys() for item in series):
        return series
    whole = {_common_labels(item) for item in series if _is_total(item)}
    return [item for item in series if _is_total(item) or _common_labels(item) not in whole]


def _is_total(item: Series) -> bool:
    return all(item.labels.get(name, "") in TOTALS for name in PART_LABELS)


def _common_labels(item: Series) -> frozenset[tuple[str, str]]:
    """Return the labels that parts and their total have in common."""
    return frozenset(pair for pair in item.labels.items() if pair[0] not in PART_LABELS)


def _shard(item: Series) -> set[tuple[str, str]]:
    return {(name, value) for name, value in item.labels.items() if name in SHARD_LABELS}


def has_duplicates(series: Sequence[Series]) -> bool:
    """Return whether a series occurs twice, so that it is unknown which one is valid."""
    return len({frozenset(item.labels.items()) for item in series}) < len(series)


_PREFIXES: Final = {
    "ray_vllm_": "vLLM in Ray Serve, which are those of a Ray node and not of one engine",
    "tgi_": "Text Generation Inference",
    "te_": "Text Embeddings Inference",
    "trtllm_": "TensorRT-LLM",
    "nv_inference_": "Triton Inference Server",
    "lmdeploy:": "LMDeploy",
    "llamacpp:": "llama.cpp",
}
"""Engines by the beginning of their metrics."""

NO_SERIES: Final = (
    "name the container port of the engine `metrics` or `http`, start vLLM without --disable-log-stats, and"
    " SGLang with --enable-metrics"
)
"""What to do without series of an engine."""


def no_engine(text: str) -> str:
    """Return why a page cannot be read that has no series of vLLM or SGLang."""
    for prefix, engine in _PREFIXES.items():
        if text.startswith(prefix) or f"\n{prefix}" in text:
            return f"metrics of {engine}: only vLLM and SGLang are read, so let another autoscaler scale it"
    return f"no series of vLLM or SGLang: {NO_SERIES}"
