"""Compute the values that decisions use from what pods expose.

A metric's name is that of a series (`vllm:num_requests_waiting`, `vllm:request_success_total`) or of a
histogram, with label matchers (`queue_size{model="llama"}`) or without. Matching series that differ in other
labels are summed. A gauge is used as it is. A counter becomes its rate per second, and a histogram the 95th
percentile of its increase, both over the last minute. For that, the scrapes of each pod are remembered for a
few minutes.

Quantiles are interpolated within a bucket. The last bucket has no upper bound: it is assumed to end at twice
its lower bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.samples import Sample

PERCENT: Final = 95
"""Percentile of a histogram's increase."""

WINDOW_SECONDS: Final = 60.0
"""Minimum time range of rates and quantiles, once a pod has been observed for that long."""

KEPT_SECONDS: Final = 300.0
"""Maximum age of a scrape to compare with, in seconds."""

MOST_LOOKS: Final = 64
"""Maximum number of remembered scrapes per pod."""


class PodExposure(NamedTuple):
    """What a pod exposed at one time."""

    seconds: float
    exposed: Mapping[str, ExposedMetric]


@dataclass(frozen=True, kw_only=True, slots=True)
class PodMemory:
    """The recent scrapes of a pod, oldest first. A new pod of the same name starts with an empty memory."""

    looks: tuple[PodExposure, ...] = ()

    def with_look(self, look: PodExposure) -> PodMemory:
        """Return the memory with a scrape added; of those older than the window, only the newest is kept."""
        counted = {name: item for name, item in look.exposed.items() if item.is_counter or item.buckets}
        latest = self.looks[-1].exposed if self.looks else {}
        anew = {name for name, item in counted.items() if not _goes_on(latest.get(name, item), item)}
        # What restarted cannot be compared with its past: older scrapes forget it, and keep the others.
        kept = [
            PodExposure(item.seconds, {name: old for name, old in item.exposed.items() if name not in anew})
            for item in self.looks
            if look.seconds - KEPT_SECONDS <= item.seconds < look.seconds
        ]
        compared = [place for place, item in enumerate(kept) if look.seconds - item.seconds >= WINDOW_SECONDS]
        needed = kept[compared[-1] :] if compared else kept
        return PodMemory(looks=(*needed, PodExposure(look.seconds, counted))[-MOST_LOOKS:])

    def values(self, look: PodExposure) -> dict[str, float]:
        """Return the values of a scrape by metric; those that cannot be computed yet are omitted."""
        values = {}
        for name, item in look.exposed.items():
            value = self._value(name, item, look.seconds)
            if value is not None:
                values[name] = value
        return values

    def _value(self, name: str, now: ExposedMetric, now_seconds: float) -> float | None:
        if not now.is_counter and not now.buckets:
            return now.value
        before = baseline([item for item in self.looks if name in item.exposed], now_seconds)
        if before is None:
            return None
        past = before.exposed[name]
        if now.is_counter:
            gained = now.value - past.value
            return gained / (now_seconds - before.seconds) if gained >= 0 else None
        return quantile(past.buckets, now.buckets, PERCENT)


NO_LOOKS: Final = PodMemory()
"""Memory of a pod that was never scraped."""


def _goes_on(old: ExposedMetric, new: ExposedMetric) -> bool:
    """Return whether a counter or histogram continues the old one; it restarted if it decreased."""
    fell = new.value < old.value or new.buckets.get(math.inf, 0.0) < old.buckets.get(math.inf, 0.0)
    return not fell and new.buckets.keys() == old.buckets.keys()


def baseline(
    looks: list[PodExposure],
    now_seconds: float,
    *,
    window_seconds: float = WINDOW_SECONDS,
    kept_seconds: float = KEPT_SECONDS,
) -> PodExposure | None:
    """Return the scrape to compare with: the newest that is a window old, otherwise the oldest."""
    usable = [look for look in looks if 0 < now_seconds - look.seconds <= kept_seconds]
    old = [look for look in usable if now_seconds - look.seconds >= window_seconds]
    return old[-1] if old else next(iter(usable), None)


Buckets = Mapping[float, float]
"""Cumulative counts by upper bound."""

_WHOLE_PERCENT = 100


def quantile(past: Buckets, now: Buckets, percent: int) -> float | None:
    """Return the percentile of the observations since `past`; 0 without observations.

    None if the two scrapes cannot be of one histogram that only increased. Without a past, all count.
    """
    gained = [(bound, count - past.get(bound, 0.0)) for bound, count in sorted(now.items())]
    counts = [count for _, count in gained]
    has_other_buckets = bool(past) and past.keys() != now.keys()
    is_cumulative = all(map(math.isfinite, counts)) and [0.0, *counts] == sorted([0.0, *counts])
    if has_other_buckets or not is_cumulative:
        return None
    total = counts[-1] if counts else 0.0
    if total == 0:
        return 0.0
    rank = math.ceil(total * percent / _WHOLE_PERCENT)
    low, below = 0.0, 0.0
    for bound, count in gained:
        if count >= rank:
            high = 2 * low if math.isinf(bound) else bound
            return high - (count - rank) * (high - low) / (count - below)
        low, below = bound, count
    return low


_COUNTED: Final = ("_total", "_count", "_sum", "_created")
_BUCKET: Final = "_bucket"
_LARGEST: Final = 1e300
"""Larger values are capped at this, so that sums stay finite."""

_MATCHER: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="([^"]*)"')
_LOOSE: Final = ("histogram", "summary", "unknown")
"""Metric types for which a name with one of these suffixes is a counter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExposedMetric:
    """A gauge, a counter or a histogram of one pod at one time; only histograms have buckets."""

    value: float = 0.0
    is_counter: bool = False
    buckets: Mapping[float, float] = field(default_factory=dict)


def exposed_values(families: Iterable[Metric], names: Collection[str]) -> dict[str, ExposedMetric]:
    """Return the values of the given names in metric families; names that are not found are omitted."""
    values: dict[str, ExposedMetric] = {}
    series_names = _by_series(names)
    for family in families:
        for name, samples in _samples_by_name(family, series_names).items():
            if exposed := _value_of(family, name_of(name), samples):
                values.setdefault(name, exposed)
    return values


def name_of(series_names: str) -> str:
    """Return a metric name without its label matchers."""
    return series_names.partition("{")[0]


_Wanted = Mapping[str, Mapping[tuple[str, ...], Mapping[tuple[str, ...], list[str]]]]
"""Names by series, by the labels that they match, and by the values of these: a page may have thousands of
series, and bindings may name hundreds of metrics.
"""


def _by_series(names: Collection[str]) -> _Wanted:
    by_series: dict[str, dict[tuple[str, ...], dict[tuple[str, ...], list[str]]]] = {}
    for name in names:
        matchers = _MATCHER.findall(name)
        labels, values = tuple(label for label, _ in matchers), tuple(value for _, value in matchers)
        by_series.setdefault(name_of(name), {}).setdefault(labels, {}).setdefault(values, []).append(name)
    return by_series


def _samples_by_name(family: Metric, series_names: _Wanted) -> Mapping[str, list[Sample]]:
    """Return the samples of each name that a family has."""
    samples: dict[str, list[Sample]] = {}
    for sample in family.samples:
        for series in _series_of(family, sample.name):
            for labels, values in series_names.get(series, {}).items():
                for name in values.get(tuple(map(sample.labels.get, labels)), ()):  # type: ignore[arg-type]
                    samples.setdefault(name, []).append(sample)
    return samples


def _series_of(family: Metric, name: str) -> Iterator[str]:
    """Yield the names by which a policy can mean a sample."""
    yield name
    if family.type == "counter" and name.endswith("_total"):
        yield name.removesuffix("_total")
    if family.type == "histogram" and name == f"{family.name}{_BUCKET}":
        yield family.name


def _value_of(family: Metric, name: str, samples: Sequence[Sample]) -> ExposedMetric | None:
    if family.type == "histogram" and family.name == name:
        return ExposedMetric(buckets=buckets) if (buckets := _buckets(name, samples)) else None
    values = [sample.value for sample in samples]
    if not all(map(math.isfinite, values)):
        return None
    is_counter = family.type == "counter" or (family.type in _LOOSE and name.endswith(_COUNTED))
    finite_sum = math.fsum(max(-_LARGEST, min(_LARGEST, value)) for value in values)
    return ExposedMetric(value=finite_sum, is_counter=is_counter)


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
