"""The responses of Prometheus: vectors of samples, and its configuration."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from apiserver.kinds.identity import Key
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.origins import forgeable_jobs


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


class _Data(msgspec.Struct, frozen=True):
    result: list[Sample]


class _Matrix(msgspec.Struct, frozen=True):
    result: list[Range]


class _MatrixEnvelope(msgspec.Struct, frozen=True):
    data: _Matrix


class _Envelope(msgspec.Struct, frozen=True):
    data: _Data


class _Configuration(msgspec.Struct, frozen=True):
    yaml: str


class _Configured(msgspec.Struct, frozen=True):
    data: _Configuration


def jobs_that_can_forge(body: bytes) -> list[str]:
    """Return the jobs whose series can claim any namespace. Raises UnreadableMetricsError."""
    try:
        return forgeable_jobs(msgspec.json.decode(body, type=_Configured).data.yaml)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableMetricsError(f"not a configuration: {error}") from error


def vector(body: bytes) -> Sequence[Sample]:
    """Return the samples in a response to an instant query. Raises UnreadableMetricsError."""
    try:
        return msgspec.json.decode(body, type=_Envelope).data.result
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableMetricsError(f"not a vector of samples: {error}") from error


def matrix(body: bytes) -> Sequence[Range]:
    """Return the series in a response with ranges. Raises UnreadableMetricsError."""
    try:
        return msgspec.json.decode(body, type=_MatrixEnvelope).data.result
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableMetricsError(f"Prometheus: not a matrix of samples: {error}") from error


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
