"""What the endpoints of pods, and queries, returned last: counters need two readings."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol, TypeAlias

from apiserver.kinds.activity import ActivityQuery, ActivitySeries
from apiserver.schema.json import Json
from controller.engines.endpoints import Endpoint, Exposures, Question, question
from controller.engines.metrics import Series
from controller.policies.measuring import NO_LOOKS, Exposed, Look, PodMemory
from controller.policies.policy import Value

NO_PROMETHEUS: Final = "no Prometheus is configured: set prometheus.url of the controller"
"""Why an expression has no value."""

_QUEUES: Final = ("llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size")
QUEUE_EXPRESSION: Final = (
    "sum by (namespace, inference_pool, model_name, target_model_name)"
    f' ({{__name__=~"{"|".join(_QUEUES)}"}}) > 0'
)
"""The queues of all endpoint pickers with flow control that hold requests.

The series has one name in llm-d's router, and another in the Inference Extension. Its labels name pool and
model, in older releases only the pool.
"""


class EndpointSource(Protocol):
    """The source of metrics of pods' endpoints."""

    async def expose(self, questions: Sequence[Question]) -> Exposures:
        """Return the metrics of some endpoints."""


class QuerySource(Protocol):
    """Evaluates expressions of Prometheus."""

    async def evaluate(self, expressions: Collection[str]) -> Mapping[str, Sequence[Series] | str]:
        """Return the series of each expression, or why they are unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PickerQueue:
    """The requests that endpoint pickers of a namespace hold for a model, or for pools with its pods."""

    namespace: str
    model_id: str
    pools: frozenset[str] = frozenset()

    expression: ClassVar[str] = QUEUE_EXPRESSION

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series is one of these queues."""
        is_named = self.model_id in (labels.get("model_name"), labels.get("target_model_name"))
        is_own = is_named or labels.get("inference_pool") in self.pools
        return is_own and labels.get("namespace") == self.namespace


AnySource: TypeAlias = ActivitySeries | ActivityQuery | PickerQueue
"""Where requests are visible for a workload without replicas."""


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
        self._answers: dict[str, tuple[Sequence[Series], float]] = {}
        """Series and time of each expression."""

        self.failures: Mapping[str, str] = {}
        """Why expressions have no value now."""

    async def ask(
        self,
        sources: Iterable[AnySource | None],
        queries: QuerySource | None,
        *,
        now_seconds: float,
    ) -> None:
        """Evaluate the expressions among some sources, and forget all others."""
        wanted = {item.expression for item in sources if isinstance(item, (ActivityQuery, PickerQueue))}
        answers: Mapping[str, Sequence[Series] | str] = dict.fromkeys(wanted, NO_PROMETHEUS)
        if queries is not None and wanted:
            answers = await queries.evaluate(wanted)
        self.failures = {key: item for key, item in answers.items() if isinstance(item, str)}
        new = {key: (item, now_seconds) for key, item in answers.items() if not isinstance(item, str)}
        self._answers = {key: item for key, item in self._answers.items() if key in wanted} | new

    def take(self, questions: Iterable[Question], exposures: Exposures) -> None:
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
            nothing = {name: Exposed(is_counter=True) for name in absent}
            memory = before.memory.with_look(Look(look.seconds, {**look.exposed, **nothing}))
            numbers = memory.values(look) | dict.fromkeys(absent, 0.0)
            values = {name: Value(value=value) for name, value in numbers.items()}
            kept[item.endpoint] = _Pod(uid=uid, memory=memory, values=values, seconds=look.seconds)
        self._pods = kept

    def last_values(self, item: Question, *, now_seconds: float) -> Mapping[str, Value]:
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
            said = (
                self.last_values(item, now_seconds=now_seconds) for item in activity_questions(source, pods)
            )
            return tuple(values.get(source.series) for values in said)
        answer = self._answers.get(source.expression)
        if answer is None:
            return (None,)
        series, seconds = answer
        if isinstance(source, PickerQueue):
            series = [item for item in series if source.counts(item.labels)]
        total = math.fsum(item.value for item in series)
        return (Value(value=total, age_seconds=max(0.0, now_seconds - seconds)),)


def activity_questions(source: AnySource | None, pods: Sequence[Json]) -> list[Question]:
    """Return what to read from the pods of a source; nothing for an expression."""
    if not isinstance(source, ActivitySeries):
        return []
    names = [source.series]
    return [question(pod, port=source.port, path=source.path, names=names, optional=names) for pod in pods]
