"""The responses of Prometheus: vectors of samples, and its configuration."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from apiserver.kinds.identity import Key
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.origins import forgeable_jobs

T = TypeVar("T")


class Sample(msgspec.Struct, frozen=True):
    """One sample of a vector."""

    metric: dict[str, str]
    value: tuple[float, str]
    """Evaluation time of the query, and the value."""


class Range(msgspec.Struct, frozen=True):
    """One series of a matrix."""

    metric: dict[str, str]
    values: list[tuple[float, str]]

    @property
    def points(self) -> list[tuple[float, float]]:
        """Times and values; NaN for text that is no number."""
        return [(seconds, _number(text)) for seconds, text in self.values]


class _Result(msgspec.Struct, Generic[T], frozen=True):
    result: list[T]


class _Configuration(msgspec.Struct, frozen=True):
    yaml: str


class _Envelope(msgspec.Struct, Generic[T], frozen=True):
    data: T


def jobs_that_can_forge(body: bytes) -> list[str]:
    """Return the jobs whose series can claim any namespace. Raises UnreadableMetricsError."""
    return forgeable_jobs(_data(body, _Envelope[_Configuration], "not a configuration").yaml)


def vector(body: bytes) -> Sequence[Sample]:
    """Return the samples in a response to an instant query. Raises UnreadableMetricsError."""
    return _data(body, _Envelope[_Result[Sample]], "not a vector of samples").result


def matrix(body: bytes) -> Sequence[Range]:
    """Return the series in a response with ranges. Raises UnreadableMetricsError."""
    return _data(body, _Envelope[_Result[Range]], "Prometheus: not a matrix of samples").result


def _data(body: bytes, envelope: type[_Envelope[T]], problem: str) -> T:
    try:
        return msgspec.json.decode(body, type=envelope).data
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableMetricsError(f"{problem}: {error}") from error


def values_of(samples: Sequence[Sample]) -> list[Series]:
    """Return series with their value; NaN for text that is no number."""
    return [
        Series(name=item.metric.get("__name__", ""), labels=item.metric, value=_number(item.value[1]))
        for item in samples
    ]


def ages_of(samples: Sequence[Sample]) -> list[Series]:
    """Return series with their age as value: infinite if unknown, 0 if in the future."""
    ages = []
    for item in samples:
        age_seconds = item.value[0] - _number(item.value[1])
        age_seconds = math.inf if math.isnan(age_seconds) else max(0.0, age_seconds)
        ages.append(Series(name="", labels=item.metric, value=age_seconds))
    return ages


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def by_pod(series: Sequence[Series]) -> Mapping[Key, list[Series]]:
    """Return series by namespace and pod."""
    pods: dict[Key, list[Series]] = defaultdict(list)
    for item in series:
        pods[item.labels.get("namespace", ""), item.labels.get("pod", "")].append(item)
    return pods
