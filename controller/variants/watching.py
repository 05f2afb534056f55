"""What is watched from cycle to cycle: the metrics of engines, with what is derived from them, and clocks.

A rate is a difference of counters divided by a duration. With the wall clock, rates would be wrong in a cycle
in which that clock is set, and a model idle for a moment could seem to have been idle for hours. So durations
are those of a monotonic clock, and published times those of the wall clock.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from apiserver.cluster.lease import boot_time
from apiserver.kinds.identity import Key, key_of
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.engines.readings import Reading
from controller.engines.records import EngineRecords, Idleness
from controller.engines.scraping import ScrapeResult
from controller.observe.claim import Claims
from controller.observe.gather import GatherResult, engine_pods
from controller.observe.pods import is_ready
from controller.observe.replicas import ReportAge
from controller.planning.snapshot import Variant
from controller.sizing.memory import SizingMemory
from controller.sizing.records import SizingSettings
from controller.sizing.sizing import SizingResult, size_models
from controller.variants.solver_worker import without_collection


class EngineSource(Protocol):
    """The source of engine metrics: the pods themselves or a Prometheus server."""

    async def scrape(self, pods: Sequence[Json]) -> ScrapeResult:
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

    def _store(
        self, models: Mapping[Key, str], pods: Sequence[Json], scraped: ScrapeResult
    ) -> Mapping[Key, str]:
        """Store the engines' metrics; return the reasons why some did not answer."""
        readings, others = _of_their_model(models, scraped)
        failures = {**scraped.failures, **others}
        self.misserving = frozenset(others)
        now_seconds = self._seconds()
        before = self._engines
        self._engines = before.update(
            readings, models, scraped_keys=map(key_of, pods), now_seconds=now_seconds
        )
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

    def size(self, gathered: GatherResult) -> SizingResult:
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
    models: Mapping[Key, str], scraped: ScrapeResult
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


EndpointKey = TypeVar("EndpointKey", bound=Hashable)

_log = EventLogger(__name__)

_MOST_NAMED: Final = 5
_NUMBER: Final = re.compile(r"\d+")


def silent_objects(
    requested: Iterable[tuple[Key, EndpointKey]], failures: Mapping[EndpointKey, str]
) -> Mapping[Key, str]:
    """Return the objects none of whose endpoints responded, each with the cause of the first failure.

    `requested` are the endpoints of each object, and `failures` the causes of those that failed.
    """
    causes: dict[Key, str] = {}
    responding: set[Key] = set()
    for key, endpoint in requested:
        if endpoint in failures:
            causes.setdefault(key, failures[endpoint])
        else:
            responding.add(key)
    return {key: cause for key, cause in causes.items() if key not in responding}


def silence_of(variant: Variant, failures: Mapping[Key, str]) -> str:
    """Return the first pod of a variant that did not respond, with the cause; empty if all did."""
    for replica in variant.replicas:
        why = failures.get((variant.namespace, replica.name))
        if why is not None:
            return f"{replica.name}: {why}"
    return ""


class SilenceLog:
    """Logs changes of silent objects: one line for all that became silent for the same cause."""

    def __init__(self, kind: str) -> None:
        """`kind` is what the objects are called in log lines."""
        self._kind = kind
        self._known: Mapping[Key, str] = {}

    def update(self, silent: Mapping[Key, str]) -> None:
        """Log what changed since the last update. Numbers in a cause may differ."""
        changed: dict[str, list[Key]] = defaultdict(list)
        for key, cause in silent.items():
            if key not in self._known or _general(self._known[key]) != _general(cause):
                changed[cause].append(key)
        for cause, keys in changed.items():
            _log.warning("no pod responds", kind=self._kind, objects=_name_list(keys), why=cause)
        if responding := [key for key in self._known if key not in silent]:
            _log.info("pods respond again", kind=self._kind, objects=_name_list(responding))
        self._known = silent


def _general(cause: str) -> str:
    return _NUMBER.sub("", cause)


def _name_list(keys: list[Key]) -> str:
    shown = ", ".join("/".join(key) for key in sorted(keys)[:_MOST_NAMED])
    others = len(keys) - _MOST_NAMED
    return f"{shown} and {others} more" if others > 0 else shown


_NOTEWORTHY_SECONDS: Final = 1.0


class SteadyClock:
    """Seconds since 1970: the wall clock at creation plus the time since then by the boot clock."""

    def __init__(
        self, *, wall: Callable[[], float] = time.time, boot: Callable[[], float] = boot_time
    ) -> None:
        self._boot = boot
        self._offset_seconds = wall() - boot()

    def seconds(self) -> float:
        """Return a time that is not affected by changes of the wall clock."""
        return self._offset_seconds + self._boot()


class ClockWatch:
    """Logs a warning when the wall clock was set."""

    def __init__(self) -> None:
        self._ahead_seconds: float | None = None

    def look(self, *, wall_seconds: float, steady_seconds: float) -> None:
        """Compare the clocks once per cycle."""
        ahead_seconds = wall_seconds - steady_seconds
        moved_seconds = ahead_seconds - (
            ahead_seconds if self._ahead_seconds is None else self._ahead_seconds
        )
        if abs(moved_seconds) >= _NOTEWORTHY_SECONDS:
            _log.warning(
                "the system clock was changed: rates and ages continue with elapsed time",
                by_seconds=round(moved_seconds, 1),
            )
        self._ahead_seconds = ahead_seconds
