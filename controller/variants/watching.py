"""Metrics of engines from cycle to cycle, and what is derived from them: loads, capacities, idle models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.engines.readings import Reading
from controller.engines.records import EngineRecords, Idleness
from controller.engines.scraping import Scraped
from controller.observe.claim import Claims
from controller.observe.gather import Gathered, engine_pods
from controller.observe.pods import is_ready
from controller.observe.replicas import ReportAge
from controller.sizing.memory import SizingMemory
from controller.sizing.records import SizingSettings
from controller.sizing.sizing import SizingResult, size_models
from controller.uncollected import without_collection
from controller.variants.silence import SilenceLog, silent_objects


class EngineSource(Protocol):
    """The source of engine metrics: the pods themselves or a Prometheus server."""

    async def scrape(self, pods: Sequence[Json]) -> Scraped:
        """Return the metrics of the pods' engines."""


class EngineWatch:
    """Scrapes all engines once per cycle, and keeps what sizing needs."""

    def __init__(
        self, source: EngineSource, settings: SizingSettings, *, seconds: Callable[[], float]
    ) -> None:
        """Create it; `seconds` is the clock that the source uses for its readings."""
        self._source = source
        self._settings = settings
        self._seconds = seconds
        self._engines = EngineRecords()
        self._memory = SizingMemory()
        self._silence = SilenceLog("model")
        self.silent: Mapping[Key, str] = {}
        """Models (namespace, ID) none of whose ready engines responded, with the cause."""

        self.responding = 0
        """The number of ready engines that responded."""

        self.misserving: frozenset[Key] = frozenset()
        """Pods whose engines serve another model than their object names."""

        self.idleness = Idleness()

    async def observe(self, pods: Sequence[Json], claims: Claims) -> Mapping[Key, str]:
        """Scrape all ready engines among some pods; return the reasons why some did not answer."""
        every = await asyncio.to_thread(engine_pods, pods, claims)
        ready = [pod for pod, _ in every if is_ready(pod)]
        scraped = await self._source.scrape(ready)
        models = {key_of(pod): model for pod, model in every}
        failures = await asyncio.to_thread(self._store, models, ready, scraped)
        self.silent = silent_objects([((key[0], models[key]), key) for key in map(key_of, ready)], failures)
        self.responding = len(ready) - len(failures)
        self._silence.update(self.silent)
        return failures

    def _store(self, models: Mapping[Key, str], pods: Sequence[Json], scraped: Scraped) -> Mapping[Key, str]:
        """Store the engines' metrics; return the reasons why some did not answer."""
        readings, others = _of_their_model(models, scraped)
        failures = {**scraped.failures, **others}
        self.misserving = frozenset(others)
        now_seconds = self._seconds()
        before = self._engines
        self._engines = before.update(readings, models, asked=map(key_of, pods), now_seconds=now_seconds)
        self.idleness = self.idleness.update(
            {pod: (pod[0], model) for pod, model in models.items()},
            before=before,
            after=self._engines,
            now_seconds=now_seconds,
        )
        return failures

    @property
    def has_samples(self) -> bool:
        """Whether any engine has responded."""
        return bool(self._engines.records)

    def report_age(self) -> ReportAge:
        """Return a function that returns the age of a pod's last report."""
        now_seconds, records = self._seconds(), self._engines.records

        def age(pod: Key) -> float | None:
            record = records.get(pod)
            return None if record is None else max(0.0, now_seconds - record.reading.time_seconds)

        return age

    def size(self, gathered: Gathered) -> SizingResult:
        """Return loads and capacities, and keep what was learned."""
        with without_collection():
            sized = size_models(
                gathered.snapshot,
                {key: item.facts for key, item in gathered.observed.items()},
                self._engines.reports(now_seconds=gathered.snapshot.taken_seconds),
                self._memory,
                self._settings,
            )
        self._memory = sized.memory
        return sized


def _of_their_model(
    models: Mapping[Key, str], scraped: Scraped
) -> tuple[Mapping[Key, Reading], Mapping[Key, str]]:
    """Return the readings of engines that serve the model of their object, and what the others serve."""
    readings: dict[Key, Reading] = {}
    others: dict[Key, str] = {}
    for key, reading in scraped.readings.items():
        if reading.model_names and models[key] not in reading.model_names:
            served = ", ".join(sorted(reading.model_names))
            others[key] = f"the engine serves model {served!r} and not {models[key]!r}"
        else:
            readings[key] = reading
    return readings, others
