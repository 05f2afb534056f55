"""Extract the metrics that a policy names from what one pod exposes.

A name is that of a series (`vllm:num_requests_waiting`, `vllm:request_success_total`) or of a histogram, with
label matchers (`queue_size{model="llama"}`) or without. Matching series that differ in other labels are
summed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
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


def exposed(families: Iterable[Metric], names: Collection[str]) -> dict[str, Exposed]:
    """Return the values of the given names in metric families; names that are not found are omitted."""
    found: dict[str, Exposed] = {}
    for family in families:
        for name in names:
            if said := _said(family, name):
                found.setdefault(name, said)
    return found


def name_of(wanted: str) -> str:
    """Return a metric name without its label matchers."""
    return wanted.partition("{")[0]


def _said(family: Metric, wanted: str) -> Exposed | None:
    name, matchers = name_of(wanted), _MATCHER.findall(wanted)
    samples = [
        sample
        for sample in family.samples
        if all(sample.labels.get(label) == value for label, value in matchers)
    ]
    if family.type == "histogram" and family.name == name:
        return Exposed(buckets=buckets) if (buckets := _buckets(name, samples)) else None
    names = {name, f"{name}_total"} if family.type == "counter" else {name}
    values = [sample.value for sample in samples if sample.name in names]
    if not values or not all(map(math.isfinite, values)):
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
