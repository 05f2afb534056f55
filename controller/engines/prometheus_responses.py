"""The responses of Prometheus: series, with duplicates of the same values, and jobs that cannot be trusted.

One engine may be scraped by two Prometheus replicas, by two jobs, or through two Services. The series then
differ in labels that are not the engine's own: their origin. Of all origins that cover the same endpoints of
a pod, the one with the newest sample is used. Endpoints within one origin are different engines, and add up.
An endpoint is an address: a job may name its port otherwise than another one, or even scrape it twice.

Series of some jobs can have the namespace of other pods than they come from. A target's own labels replace
those of its series only without `honor_labels`, and the relabeling rules of a monitor, which its owner
writes, may set any label. Nothing in the series tells this. What decides is the last rule that may set the
label `namespace`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec
import yaml

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json, as_list, as_object
from controller.engines.exposition import (
    INSTANCE,
    PART_LABELS,
    PORT_LABELS,
    SERIES,
    SHARD_LABELS,
    EndpointLabels,
    Meaning,
    UnreadableMetricsError,
    endpoint_of,
)
from controller.engines.metrics import NO_SERIES, Series

_OWN: Final = (
    frozenset({"__name__", "engine", "model_name", "finished_reason", "le", "engine_type", "dp_rank"})
    | PART_LABELS
    | SHARD_LABELS
)
"""Labels that engines give their series."""

_WAITING: Final = frozenset(named.name for named in SERIES if named.meaning is Meaning.WAITING)

_GIVEN: Final = frozenset({"job", "service", "prometheus", "prometheus_replica"})
"""Labels that Prometheus adds to the series of any exporter, other than those of an endpoint."""

Origin = tuple[tuple[str, str], ...]


def of_one_origin(series: Iterable[Series], times: Sequence[Series]) -> tuple[list[Series], float]:
    """Return the series of a pod that count, and the age of the oldest of them in seconds.

    The values of `times` are the ages of the waiting series. Raises UnreadableMetricsError if there is none,
    or if no origin covers all endpoints: then it is unknown what is counted twice.
    """
    series = list(series)
    names = _origin_labels([item for item in series if item.name in _WAITING])
    ages: dict[Origin, float] = defaultdict(float)
    endpoints: dict[Origin, set[EndpointLabels]] = defaultdict(set)
    for item in times:
        origin = _part(item.labels, names)
        ages[origin] = max(ages[origin], item.value)
        endpoints[origin].add(endpoint_of(item.labels))
    if not ages:
        raise UnreadableMetricsError(
            f"Prometheus has no series of vLLM or SGLang with this pod's name in the label `pod`: {NO_SERIES}"
        )
    chosen = _choose(ages, endpoints)
    return _once([item for item in series if _part(item.labels, names) == chosen]), ages[chosen]


def of_one_origin_each(series: Iterable[Series], times: Sequence[Series]) -> tuple[list[Series], float]:
    """Return the series of arbitrary names that count, and the age of the oldest of them in seconds.

    For each name one origin is used, by the labels that Prometheus itself adds. A name for which no origin
    covers all endpoints is omitted: then it is unknown what is counted twice. The values of `times` are ages.
    """
    ages: dict[Origin, float] = defaultdict(float)
    for item in times:
        origin = _part(item.labels, _GIVEN)
        ages[origin] = max(ages[origin], item.value)
    by_name: dict[str, list[Series]] = defaultdict(list)
    for item in series:
        by_name[item.name].append(item)
    counted: list[Series] = []
    oldest_seconds = 0.0
    for own_series in by_name.values():
        endpoints: dict[Origin, set[EndpointLabels]] = defaultdict(set)
        for item in own_series:
            endpoints[_part(item.labels, _GIVEN)].add(endpoint_of(item.labels))
        try:
            chosen = _choose({origin: ages.get(origin, math.inf) for origin in endpoints}, endpoints)
        except UnreadableMetricsError:
            continue
        counted += _once([item for item in own_series if _part(item.labels, _GIVEN) == chosen])
        oldest_seconds = max(oldest_seconds, ages.get(chosen, math.inf))
    return counted, oldest_seconds


def _choose(ages: Mapping[Origin, float], endpoints: Mapping[Origin, set[EndpointLabels]]) -> Origin:
    everything = set().union(*endpoints.values())
    whole = [origin for origin in ages if endpoints[origin] == everything]
    if not whole:
        jobs = " and ".join(sorted({dict(origin).get("job", "?") for origin in ages}))
        raise UnreadableMetricsError(
            f"the jobs {jobs} scrape different endpoints of this pod: let one job scrape all of them, or"
            " drop the series of the others"
        )
    return min(whole, key=lambda origin: (ages[origin], origin))


def _origin_labels(waiting: Sequence[Series]) -> frozenset[str]:
    names = frozenset(name for item in waiting for name in item.labels)
    return names - _OWN - PORT_LABELS - {INSTANCE}


def _once(series: list[Series]) -> list[Series]:
    """Return the series of one origin, without those of a second scrape of the same address."""
    first: dict[EndpointLabels, Origin] = {}
    for item in series:
        endpoint, port = endpoint_of(item.labels), _part(item.labels, PORT_LABELS)
        first[endpoint] = min(first.get(endpoint, port), port)
    return [item for item in series if _part(item.labels, PORT_LABELS) == first[endpoint_of(item.labels)]]


def _part(labels: Mapping[str, str], names: frozenset[str]) -> Origin:
    return tuple(sorted((name, labels[name]) for name in names if name in labels))


_NAMESPACE: Final = "namespace"
_DISCOVERED: Final = "__meta_kubernetes_namespace"
_ANY: Final = (None, "(.*)")
_FIRST: Final = (None, "$1", "${1}")
_OF_OBJECT: Final = re.compile(r"(?:podMonitor|serviceMonitor|probe|scrapeConfig)/([^/]+)/")
"""Matches the name of a job that the Prometheus operator made from an object of a namespace."""


def forgeable_jobs(text: str) -> list[str]:
    """Return the jobs of a configuration whose series can claim any namespace, in order.

    Those that the Prometheus operator made must set the namespace of their object, as with
    `enforcedNamespaceLabel`; others may also copy the namespace of the discovered pod. Raises
    UnreadableMetricsError for text that is no configuration.
    """
    try:
        document = as_object(yaml.load(text, yaml.CSafeLoader))
        jobs = [as_object(job) for job in as_list(document.get("scrape_configs"))]
        forgeable = [str(job.get("job_name")) for job in jobs if not _is_enforced(job)]
        return [*forgeable, *map(str, as_list(document.get("scrape_config_files")))]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnreadableMetricsError("the configuration of Prometheus is no YAML") from error


def _is_enforced(job: Json) -> bool:
    owner = _OF_OBJECT.match(str(job.get("job_name")))
    rule = _last_rule(as_list(job.get("metric_relabel_configs")))
    if rule is None and not job.get("honor_labels"):
        rule = _last_rule(as_list(job.get("relabel_configs")))
    if rule is None or rule.get("regex") not in _ANY or rule.get("action", "replace") != "replace":
        return False
    replacement = rule.get("replacement")
    if owner is not None:
        return bool(replacement == owner[1])
    is_constant = isinstance(replacement, str) and "$" not in replacement and replacement != ""
    return is_constant or (rule.get("source_labels") == [_DISCOVERED] and replacement in _FIRST)


def _last_rule(rules: Sequence[object]) -> Json | None:
    """Return the last rule that may set or remove the label."""
    return next((rule for rule in map(as_object, reversed(rules)) if _may_change(rule)), None)


def _may_change(rule: Json) -> bool:
    match rule.get("action", "replace"):
        case "keep" | "drop" | "keepequal" | "dropequal":
            return False
        case "labeldrop":
            return _matches(rule)
        case "labelkeep":
            return not _matches(rule)
        case "labelmap":
            name = str(rule.get("replacement", "$1"))
        case _:
            name = str(rule.get("target_label"))
    return name == _NAMESPACE or "$" in name


def _matches(rule: Json) -> bool:
    try:
        return re.fullmatch(str(rule.get("regex", "(.*)")), _NAMESPACE) is not None
    except re.error:  # in the syntax of RE2
        return rule.get("action") == "labeldrop"


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
