"""Metric endpoints of bindings and in front of models: what is asked, and what was returned last.

Counters need two readings. So do queries of Prometheus that stand for an endpoint: their last answer counts
while there is no new one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from prometheus_client import Metric

from apiserver.kinds.activity import ActivityQuery, ActivitySeries
from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.engines.exposition import UnreadableMetricsError, families_in
from controller.engines.metrics import Series
from controller.policies.measuring import (
    NO_LOOKS,
    ExposedMetric,
    PodExposure,
    PodMemory,
    exposed_values,
    name_of,
)
from controller.policies.policy import Value

MOST_NAMES: Final = 500
"""Maximum number of metrics, counted with their label matchers, that bindings may name at one endpoint."""

_MOST_ENDPOINTS: Final = 8
"""Maximum number of endpoints of one pod: each is a request in every cycle."""

TOO_MANY_ENDPOINTS: Final = f"it is not read: bindings name more of this pod than {_MOST_ENDPOINTS} endpoints"
"""Why an endpoint beyond this number is not read."""

_SUFFIXES: Final = ("_total", "_count", "_sum", "_bucket")
_BUCKET: Final = "_bucket"
_TYPE: Final = "# TYPE "
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


class Endpoint(NamedTuple):
    """One metrics path of one pod."""

    namespace: str
    pod: str
    port: int
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointQuery:
    """An endpoint of a pod, and the metrics requested from it; questions are compared by endpoint."""

    endpoint: Endpoint
    pod: Json = field(compare=False)
    names: frozenset[str] = field(compare=False)
    optional: frozenset[str] = field(default=frozenset(), compare=False)
    """Metrics that count as 0 if the page lacks them: series that appear with the first event."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposures:
    """Exposed values of the endpoints that responded, and the errors of the others."""

    looks: Mapping[Endpoint, PodExposure] = field(default_factory=dict)
    failures: Mapping[Endpoint, str] = field(default_factory=dict)


def question(
    pod: Json, *, port: int, path: str, names: Collection[str], optional: Collection[str] = ()
) -> EndpointQuery:
    """Return the question for a pod."""
    endpoint = Endpoint(*key_of(pod), port, path)
    return EndpointQuery(endpoint=endpoint, pod=pod, names=frozenset(names), optional=frozenset(optional))


def first_of_each_pod(endpoints: Iterable[Endpoint]) -> set[Endpoint]:
    """Return the endpoints that are read: the first of each pod, by port and path."""
    read: dict[Key, list[Endpoint]] = defaultdict(list)
    for endpoint in sorted(endpoints):
        of_pod = read[endpoint.namespace, endpoint.pod]
        if len(of_pod) < _MOST_ENDPOINTS:
            of_pod.append(endpoint)
    return {endpoint for of_pod in read.values() for endpoint in of_pod}


def exposed_in(text: str, names: Collection[str]) -> Mapping[str, ExposedMetric]:
    """Return the values of the given names in an exposition.

    Raises UnreadableMetricsError for invalid text, and for too many names.
    """
    if len(names) > MOST_NAMES:
        raise UnreadableMetricsError(f"bindings name {len(names)} metrics of it, of at most {MOST_NAMES}")
    stems = tuple(_stem(name_of(name)) for name in names)
    heads = (*stems, *(f"{_TYPE}{stem}" for stem in stems))
    return exposed_values(families_in(text, heads), names)


def series_names(names: Collection[str]) -> list[str]:
    """Return the series names to query from a source without types; invalid names are omitted."""
    usable = sorted({name for name in map(name_of, names) if _NAME.fullmatch(name)})
    return [series for name in usable for series in (name, f"{name}{_BUCKET}")]


def exposed_series(series: Sequence[Series], names: Collection[str]) -> Mapping[str, ExposedMetric]:
    """Return the values of series without types: counters are recognized by name, histograms by buckets."""
    families = []
    by_name: dict[str, list[Series]] = defaultdict(list)
    for item in series:
        by_name[item.name].append(item)
    for name in dict.fromkeys(map(name_of, names)):
        buckets, plain = by_name.get(f"{name}{_BUCKET}", []), by_name.get(name, [])
        kind = "histogram" if buckets else "counter" if name.endswith(_SUFFIXES) else "gauge"
        stem = name.removesuffix("_total") if kind == "counter" else name
        family = Metric(stem or name, "", kind)
        for item in buckets or plain:
            family.add_sample(item.name, dict(item.labels), item.value)
        families.append(family)
    return exposed_values(families, names)


def _stem(name: str) -> str:
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


NO_PROMETHEUS: Final = "no Prometheus is configured: set prometheus.url of the controller"
"""Why an expression has no value."""

QUEUE_SIZE: Final = "_flow_control_queue_size"
"""How the name of the series of an endpoint picker's queue ends; others only show that there is a picker."""

QUEUE_EXPRESSION: Final = (
    "sum by (__name__, namespace, inference_pool, model_name, target_model_name)"
    ' ({__name__=~"(llm_d_epp|inference_extension)_flow_control_(queue_size|pool_saturation)"})'
)
"""The queues of all endpoint pickers with flow control, and the saturation of their pools.

The series has one prefix in llm-d's router, and another in the Inference Extension. Its labels name pool and
model, in older releases only the pool. That of a queue appears with its first request, the other before.
"""


class EndpointSource(Protocol):
    """The source of metrics of pods' endpoints."""

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return the metrics of some endpoints."""


class QuerySource(Protocol):
    """Evaluates expressions of Prometheus."""

    async def queues(self) -> Sequence[Series] | str:
        """Return the series of `QUEUE_EXPRESSION`, or why they are unknown."""

    async def evaluate(self, expressions: Collection[str]) -> Mapping[str, Sequence[Series] | str]:
        """Return the series of expressions that users wrote, or why they are unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PickerQueue:
    """The requests that endpoint pickers of a namespace hold for a model, or for pools with its pods."""

    namespace: str
    model_id: str
    pools: frozenset[str] = frozenset()

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series is one of these queues."""
        is_named = self.model_id in (labels.get("model_name"), labels.get("target_model_name"))
        is_own = is_named or labels.get("inference_pool") in self.pools
        return is_own and labels.get("namespace") == self.namespace


AnySource: TypeAlias = ActivitySeries | ActivityQuery | PickerQueue
"""Where requests are visible for a workload without replicas."""


class _SeriesAnswer(NamedTuple):
    """Series, and when they were returned."""

    series: Sequence[Series]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pod:
    """One endpoint of one pod: its counters, and its last values with their time."""

    uid: str
    memory: PodMemory = NO_LOOKS
    values: Mapping[str, Value] = field(default_factory=dict)
    seconds: float = 0.0


class EndpointMemory:
    """The last values of endpoints and of expressions."""

    def __init__(self) -> None:
        self._pods: dict[Endpoint, _Pod] = {}
        self._answers: dict[str, _SeriesAnswer] = {}
        """The last series of each expression."""

        self._queues: _SeriesAnswer | None = None
        """The last series of all endpoint pickers."""

        self.failures: Mapping[str, str] = {}
        """Why expressions have no value now."""

        self.queue_failure = ""
        """Why the queues of endpoint pickers are not known now; empty if they are."""

    async def ask(
        self, sources: Iterable[AnySource | None], queries: QuerySource | None, *, now_seconds: float
    ) -> None:
        """Evaluate the expressions among some sources, and forget all others."""
        every = list(sources)
        expressions = {item.expression for item in every if isinstance(item, ActivityQuery)}
        answers: Mapping[str, Sequence[Series] | str] = dict.fromkeys(expressions, NO_PROMETHEUS)
        if queries is not None and expressions:
            answers = await queries.evaluate(expressions)
        self.failures = {key: item for key, item in answers.items() if isinstance(item, str)}
        new = {
            key: _SeriesAnswer(item, now_seconds)
            for key, item in answers.items()
            if not isinstance(item, str)
        }
        self._answers = {key: item for key, item in self._answers.items() if key in expressions} | new
        if queries is not None and any(isinstance(item, PickerQueue) for item in every):
            queues = await queries.queues()
            self.queue_failure = queues if isinstance(queues, str) else ""
            self._queues = self._queues if isinstance(queues, str) else _SeriesAnswer(queues, now_seconds)

    def take(self, questions: Iterable[EndpointQuery], exposures: Exposures) -> None:
        """Store the pods' metrics; forget pods that were not scraped."""
        kept: dict[Endpoint, _Pod] = {}
        for item in questions:
            uid = str(item.pod["metadata"].get("uid", ""))
            before = self._pods.get(item.endpoint)
            if before is None or before.uid != uid:
                before = _Pod(uid=uid)
            look = exposures.looks.get(item.endpoint)
            if look is None or look.seconds <= before.seconds:
                kept[item.endpoint] = before
                continue
            absent = item.optional - look.exposed.keys()
            nothing = {name: ExposedMetric(is_counter=True) for name in absent}
            memory = before.memory.with_look(PodExposure(look.seconds, {**look.exposed, **nothing}))
            numbers = memory.values(look) | dict.fromkeys(absent, 0.0)
            values = {name: Value(value=value) for name, value in numbers.items()}
            kept[item.endpoint] = _Pod(uid=uid, memory=memory, values=values, seconds=look.seconds)
        self._pods = kept

    def last_values(self, item: EndpointQuery, *, now_seconds: float) -> Mapping[str, Value]:
        """Return the last values of an endpoint with their age; empty if it never responded."""
        pod = self._pods.get(item.endpoint)
        if pod is None:
            return {}
        age_seconds = max(0.0, now_seconds - pod.seconds)
        return {name: Value(value=value.value, age_seconds=age_seconds) for name, value in pod.values.items()}

    def activity(
        self, source: AnySource, pods: Sequence[Json], *, now_seconds: float
    ) -> tuple[Value | None, ...]:
        """Return the last values of a source, None for a silent pod or expression."""
        if isinstance(source, ActivitySeries):
            readings = (
                self.last_values(item, now_seconds=now_seconds) for item in activity_questions(source, pods)
            )
            return tuple(values.get(source.series) for values in readings)
        answer = self._queues if isinstance(source, PickerQueue) else self._answers.get(source.expression)
        if answer is None:
            return (None,)
        series = answer.series
        if isinstance(source, PickerQueue):
            series = [item for item in series if source.counts(item.labels) and _is_queue(item)]
        # Values are not added: the sum of large ones can be infinite.
        most = max([item.value for item in series], default=0.0)
        return (Value(value=most, age_seconds=max(0.0, now_seconds - answer.seconds)),)

    def is_reported(self, queue: PickerQueue) -> bool:
        """Return whether an endpoint picker reports for a model, whether or not requests wait."""
        return self._queues is not None and any(queue.counts(item.labels) for item in self._queues.series)


def _is_queue(series: Series) -> bool:
    return series.labels.get("__name__", "").endswith(QUEUE_SIZE)


def activity_questions(source: AnySource | None, pods: Sequence[Json]) -> list[EndpointQuery]:
    """Return what to read from the pods of a source; nothing for an expression."""
    if not isinstance(source, ActivitySeries):
        return []
    names = [source.series]
    return [question(pod, port=source.port, path=source.path, names=names, optional=names) for pod in pods]
