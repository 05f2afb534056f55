"""Extract the metrics that a policy names from what one pod exposes.

A name is that of a series (`vllm:num_requests_waiting`, `vllm:request_success_total`) or of a histogram, with
label matchers (`queue_size{model="llama"}`) or without. Matching series that differ in other labels are
summed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Metric
from prometheus_client.samples import Sample

_COUNTED: Final = ("_total", "_count", "_sum", "_created")
_BUCKET: Final = "_bucket"
_MATCHER: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="([^"]*)"')
_LOOSE: Final = ("histogram", "summary", "unknown")
"""Metric types for which a name with one of these suffixes is a counter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposed:
    """A gauge, a counter or a histogram of one pod at one time; only histograms have buckets."""

    value: float = 0.0
    is_counter: bool = False
    buckets: Mapping[float, float] = field(default_factory=dict)


def exposed_values(families: Iterable[Metric], names: Collection[str]) -> dict[str, Exposed]:
    """Return the values of the given names in metric families; names that are not found are omitted."""
    found: dict[str, Exposed] = {}
    wanted = _by_series(names)
    for family in families:
        for name, samples in _matching(family, wanted).items():
            if said := _value_of(family, name_of(name), samples):
                found.setdefault(name, said)
    return found


def name_of(wanted: str) -> str:
    """Return a metric name without its label matchers."""
    return wanted.partition("{")[0]


_Wanted = Mapping[str, Mapping[tuple[str, ...], Mapping[tuple[str, ...], list[str]]]]
"""Names by series, by the labels that they match, and by the values of these: a page may have thousands of
series, and bindings may name hundreds of metrics.
"""


def _by_series(names: Collection[str]) -> _Wanted:
    found: dict[str, dict[tuple[str, ...], dict[tuple[str, ...], list[str]]]] = {}
    for name in names:
        matchers = _MATCHER.findall(name)
        labels, values = tuple(label for label, _ in matchers), tuple(value for _, value in matchers)
        found.setdefault(name_of(name), {}).setdefault(labels, {}).setdefault(values, []).append(name)
    return found


def _matching(family: Metric, wanted: _Wanted) -> Mapping[str, list[Sample]]:
    """Return the samples of each name that a family has."""
    found: dict[str, list[Sample]] = {}
    for sample in family.samples:
        for series in _series_of(family, sample.name):
            for labels, values in wanted.get(series, {}).items():
                for name in values.get(tuple(map(sample.labels.get, labels)), ()):  # type: ignore[arg-type]
                    found.setdefault(name, []).append(sample)
    return found


def _series_of(family: Metric, name: str) -> Iterator[str]:
    """Yield the names by which a policy can mean a sample."""
    yield name
    if family.type == "counter" and name.endswith("_total"):
        yield name.removesuffix("_total")
    if family.type == "histogram" and name == f"{family.name}{_BUCKET}":
        yield family.name


def _value_of(family: Metric, name: str, samples: Sequence[Sample]) -> Exposed | None:
    if family.type == "histogram" and family.name == name:
        return Exposed(buckets=buckets) if (buckets := _buckets(name, samples)) else None
    values = [sample.value for sample in samples]
    if not all(map(math.isfinite, values)):
        return None
    is_counter = family.type == "counter" or (family.type in _LOOSE and name.endswith(_COUNTED))
    return Exposed(value=math.fsum(_countable(values)), is_counter=is_counter)


def _countable(values: Iterable[float]) -> Iterator[float]:
    return (max(-_LARGEST, min(_LARGEST, value)) for value in values)


_LARGEST: Final = 1e300


def _buckets(name: str, samples: Iterable[Sample]) -> dict[float, float]:
    """Return the summed buckets of the series; empty if one is not a number or there is no +Inf bucket."""
    buckets: dict[float, float] = {}
    for sample in samples:
        if sample.name == f"{name}{_BUCKET}":
            try:
                bound = float(sample.labels.get("le", ""))
            except ValueError:
                return {}
            if math.isnan(bound) or not math.isfinite(sample.value):
                return {}
            buckets[bound] = buckets.get(bound, 0.0) + sample.value
    return buckets if math.inf in buckets else {}
