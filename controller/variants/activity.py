"""Requests for models without replicas: they start one, and keep the last one, where they are visible."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from apiserver.kinds.activity import ActivityQuery
from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.engines.endpoints import (
    AnySource,
    EndpointMemory,
    EndpointSource,
    Exposures,
    PickerQueue,
    QuerySource,
    activity_questions,
)
from controller.engines.records import Idleness
from controller.observe.activity import UNSEEN, WatchedModel
from controller.policies.policy import Activity, activity_among
from controller.sizing.records import SizingSettings

_ACTIVE: Final = frozenset({Activity.SEEN, Activity.UNKNOWN})
"""What keeps a last replica: it is not removed while a source does not respond."""


class ActivityWatch:
    """Reads the sources of all models that may scale to zero, once per cycle."""

    def __init__(
        self, endpoints: EndpointSource | None, queries: QuerySource | None, settings: SizingSettings
    ) -> None:
        """Create it; without `endpoints`, no pods are read, and without `queries`, no expressions."""
        self._endpoints = endpoints
        self._queries = queries
        self._settings = settings
        self._memory = EndpointMemory()
        self._awaited_seconds: Mapping[Key, float] = {}
        self._active: Mapping[Key, float] = {}
        self.problems: Mapping[Key, str] = {}
        """Why requests for a model cannot be seen while it has no replica, by (namespace, model)."""

    async def observe(self, models: Mapping[Key, WatchedModel], *, now_seconds: float) -> None:
        """Read all sources."""
        every = [pair for model in models.values() for pair in model.sources]
        questions = [item for source, pods in every for item in activity_questions(source, pods)]
        exposures = Exposures()
        if self._endpoints is not None and questions:
            exposures = await self._endpoints.expose(questions)
        await self._memory.ask([source for source, _ in every], self._queries, now_seconds=now_seconds)
        self._memory.take(questions, exposures)
        await asyncio.to_thread(self._decide, models, exposures, now_seconds)

    def idleness(self, engines: Idleness) -> Idleness:
        """Return how long models have been idle, given what their engines show."""
        return engines.with_activity(self._awaited_seconds, active=self._active)

    def _decide(self, models: Mapping[Key, WatchedModel], exposures: Exposures, now_seconds: float) -> None:
        seen = {key: self._activity(model, now_seconds) for key, model in models.items()}
        before = {key: seconds for key, seconds in self._awaited_seconds.items() if key in models}
        awaited = dict.fromkeys((key for key, item in seen.items() if item is Activity.SEEN), now_seconds)
        self._awaited_seconds = before | awaited
        active = dict.fromkeys((key for key, item in seen.items() if item in _ACTIVE), now_seconds)
        self._active = self._awaited_seconds | active
        problems = {key: self._problem(model, exposures) for key, model in models.items()}
        self.problems = {key: text for key, text in problems.items() if text}

    def _activity(self, model: WatchedModel, now_seconds: float) -> Activity:
        if not model.sources:
            return Activity.UNWATCHED
        values = [
            value
            for source, pods in model.sources
            for value in self._memory.activity(source, pods, now_seconds=now_seconds) or (None,)
        ]
        return activity_among(values, self._settings)

    def _problem(self, model: WatchedModel, exposures: Exposures) -> str:
        """Return why requests for a model are not visible; empty if they are."""
        if not model.sources:
            return UNSEEN
        problems = (self._problem_of(source, pods, exposures) for source, pods in model.sources)
        return next(filter(None, problems), "")

    def _problem_of(self, source: AnySource, pods: Sequence[Json], exposures: Exposures) -> str:
        memory, unknown = self._memory, "it is not known whether requests wait for it"
        if isinstance(source, PickerQueue):
            known = "" if memory.is_reported(source) else UNSEEN
            return f"{unknown}: {memory.queue_failure}" if memory.queue_failure else known
        if isinstance(source, ActivityQuery):
            failure = memory.failures.get(source.expression)
            return f"{unknown}: {failure}" if failure else ""
        if not pods:
            labels = ",".join(f"{name}={text}" for name, text in source.labels.items())
            return f"{unknown}: no ready pod has the labels {labels}"
        endpoints = (item.endpoint for item in activity_questions(source, pods))
        failures = ((item.pod, exposures.failures[item]) for item in endpoints if item in exposures.failures)
        return next((f"{unknown}: pod {pod}: {why}" for pod, why in failures), "")
