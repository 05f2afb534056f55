"""Query a Prometheus that already scrapes the engines, instead of the pods.

Namespaces are queried together, in batches of at most `PODS_OF_A_BATCH` pods, and a namespace with more pods
in several batches: a response has about 13 kB for each engine. A batch takes two instant queries: the values,
and the times of their scrapes, because an instant query would otherwise present a five-minute-old sample as
fresh. Ages are by Prometheus' own clock, which may differ from ours.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Self, TypeVar

import aiohttp

from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.engines.endpoints import (
    QUEUE_EXPRESSION,
    Endpoint,
    EndpointQuery,
    Exposures,
    exposed_series,
    series_names,
)
from controller.engines.exposition import NAMES, EngineKind, Meaning, UnreadableMetricsError, names_of
from controller.engines.metrics import Series
from controller.engines.prometheus_responses import (
    Sample,
    ages_of,
    by_pod,
    jobs_that_can_forge,
    of_one_origin,
    of_one_origin_each,
    values_of,
    vector,
)
from controller.engines.readings import Reading, reading_of
from controller.engines.requests import (
    NO_CREDENTIALS,
    CredentialFiles,
    CredentialsConfig,
    OversizedBodyError,
    cause_of,
    read_bounded,
)
from controller.engines.scraping import ScrapeResult
from controller.policies.measuring import PodExposure

T = TypeVar("T")

_OK: Final = 200
_LIMIT_BYTES: Final = 64 << 20
_ACTIVITY_BYTES: Final = 4 << 20
"""Maximum size of a response about requests in front of models."""

PODS_OF_A_BATCH: Final = 500
"""Maximum pods per batch, so that the response fits even with ten engines in each pod."""

_LONGEST_QUERY: Final = 1 << 20
"""Maximum length of a query in characters; Prometheus reads 10 MB."""

_REFUSED: Final = frozenset({400, 422})
"""Status codes for a query that cannot be parsed or evaluated."""

_AT_ONCE: Final = 4
_MOST_JOBS: Final = 3
"""The number of jobs that a reason names."""

_WAITING: Final = tuple(name for kind in EngineKind for name in names_of(kind, Meaning.WAITING))

_NOT_EVALUATED: Final = "with tenants, expressions in annotations are not evaluated: name pods and a series"
_TOO_LATE: Final = "Prometheus: all expressions together took too long"


class RefusedQueryError(UnreadableMetricsError):
    """Prometheus cannot answer this query."""


class PrometheusSource:
    """Reads engine series from one Prometheus. Use as `async with PrometheusSource(...) as source`."""

    def __init__(
        self,
        url: str,
        *,
        credentials: CredentialsConfig = NO_CREDENTIALS,
        timeout_seconds: float = 10.0,
        clock: Callable[[], float] = time.time,
        trusted_jobs: frozenset[str] | None = None,
    ) -> None:
        """Create it. Jobs other than `trusted_jobs` must enforce the label `namespace`; None trusts all."""
        self._url = f"{url.rstrip('/')}/api/v1"
        self._trusted_jobs = trusted_jobs
        self._checked: tuple[bytes, list[str]] = b"", []
        """The last configuration, and its forgeable jobs."""

        self._files = CredentialFiles(credentials)
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._activity_gate = asyncio.Semaphore(_AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._timeout_seconds), trust_env=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def scrape(self, pods: Sequence[Json]) -> ScrapeResult:
        """Return the readings of the pods known to Prometheus, and the errors for the others."""
        if why := await self._why_untrusted():
            return ScrapeResult(readings={}, failures=dict.fromkeys(map(key_of, pods), why))
        chosen = f'"{"|".join(NAMES)}"'
        answers = await _of_each(batches_of(pods), partial(self._answers, chosen=chosen, dated=_WAITING))
        readings: dict[Key, Reading] = {}
        failures: dict[Key, str] = {}
        for pod in pods:
            key = key_of(pod)
            try:
                readings[key] = self._read_answer(answers[key], key)
            except UnreadableMetricsError as error:
                failures[key] = str(error)
        return ScrapeResult(readings=readings, failures=failures)

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return the metrics of pods known to Prometheus, whichever endpoint it scraped them from."""
        if why := await self._why_untrusted():
            return Exposures(failures=dict.fromkeys((item.endpoint for item in questions), why))
        names: dict[Key, frozenset[str]] = {}
        for item in questions:
            key = key_of(item.pod)
            names[key] = names.get(key, frozenset()) | item.names
        pods = {key_of(item.pod): item.pod for item in questions}
        answers = await _of_each(batches_of(list(pods.values())), partial(self._looks, names=names))
        looks: dict[Endpoint, PodExposure] = {}
        failures: dict[Endpoint, str] = {}
        for item in questions:
            key = key_of(item.pod)
            answer = answers[key]
            if isinstance(answer, str):
                failures[item.endpoint] = answer
            elif look := answer.get(key):
                looks[item.endpoint] = look
            else:
                failures[item.endpoint] = "Prometheus has no metrics of this pod"
        return Exposures(looks=looks, failures=failures)

    async def queues(self) -> Sequence[Series] | str:
        """Return the series of all endpoint pickers with flow control, or why they are unknown."""
        return await self._why_untrusted() or await self._series(QUEUE_EXPRESSION)

    async def evaluate(self, expressions: Collection[str]) -> Mapping[str, Sequence[Series] | str]:
        """Return the series of expressions that users wrote, or why they are unknown.

        All together have the time of one query, so that a slow one does not delay the decisions about others.
        """
        if self._trusted_jobs is not None:  # there are tenants, and an expression can read all namespaces
            return dict.fromkeys(expressions, _NOT_EVALUATED)
        tasks = {item: asyncio.create_task(self._series(item)) for item in sorted(expressions)}
        if not tasks:
            return {}
        _, late = await asyncio.wait(tasks.values(), timeout=self._timeout_seconds)
        for task in late:
            task.cancel()
        return {item: _TOO_LATE if task in late else task.result() for item, task in tasks.items()}

    async def _series(self, expression: str) -> Sequence[Series] | str:
        try:
            async with self._activity_gate:
                samples = await self._query(expression, limit_bytes=_ACTIVITY_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError, UnreadableMetricsError) as error:
            return _failure(error)
        series = values_of(samples)
        is_usable = all(math.isfinite(item.value) for item in series)
        return series if is_usable else "Prometheus: a value is not a number"

    async def _looks(
        self, batch: PodBatch, names: Mapping[Key, frozenset[str]]
    ) -> Mapping[Key, PodExposure] | str:
        request = series_names(frozenset().union(*(names[key] for key in batch.pods)))
        answer = await self._answers(batch, chosen=_any(request), dated=request)
        return answer if isinstance(answer, str) else await asyncio.to_thread(_looks_by_pod, answer, names)

    def _read_answer(self, answer: _Answers | str, key: Key) -> Reading:
        if isinstance(answer, str):
            raise UnreadableMetricsError(answer)
        series, age_seconds = of_one_origin(answer.values.get(key, ()), answer.ages.get(key, ()))
        dated = (replace(item, time_seconds=answer.asked_seconds - age_seconds) for item in series)
        return reading_of(dated, time_seconds=answer.asked_seconds)

    async def _answers(self, batch: PodBatch, *, chosen: str, dated: Sequence[str]) -> _Answers | str:
        """Return the series of the pods whose name matches, and the ages of the `dated` ones, or an error."""
        within = batch.matchers
        try:
            async with self._gate:
                # Taken before the query, however long the response takes, so that a repeated sample does not
                # seem to be newer than before.
                asked_seconds = self._clock()
                # One name per selector: `timestamp` drops it, and a pod with both names would invalidate the
                # response. It is in a label matcher, because some names are keywords of expressions.
                stamps = [f'timestamp({{__name__="{name}",{within}}})' for name in dated]
                times = await self._query(" or ".join(stamps)) if stamps else []
                # Evaluated at the same time, as a scrape in between would pair new values with old
                # timestamps.
                moment = times[0].value[0] if times else None
                values = await self._query(f"{{__name__=~{chosen},{within}}}", moment)
        except (aiohttp.ClientError, TimeoutError, OSError, UnreadableMetricsError) as error:
            return _failure(error)
        # In a thread: the Lease must be renewed while thousands of series are read.
        return await asyncio.to_thread(_answers_of, times, values, asked_seconds=asked_seconds)

    async def _query(
        self, expression: str, moment: float | None = None, *, limit_bytes: int = _LIMIT_BYTES
    ) -> Sequence[Sample]:
        if len(expression) > _LONGEST_QUERY:
            raise RefusedQueryError(f"the query has {len(expression)} characters, of {_LONGEST_QUERY}")
        request = {"query": expression} | ({} if moment is None else {"time": f"{moment:.3f}"})
        body = await self._answer("POST", "query", request, limit_bytes=limit_bytes)
        return await asyncio.to_thread(vector, body)

    async def _why_untrusted(self) -> str:
        """Return why readings may be those of other namespaces, or an empty string."""
        if self._trusted_jobs is None:
            return ""
        try:
            body = await self._answer("GET", "status/config")
            if body != self._checked[0]:  # parsing takes a second for thousands of jobs
                self._checked = body, await asyncio.to_thread(jobs_that_can_forge, body)
        except (aiohttp.ClientError, TimeoutError, OSError, UnreadableMetricsError) as error:
            return f"the jobs of Prometheus cannot be checked: {type(error).__name__}: {error}"
        jobs = [job for job in self._checked[1] if job not in self._trusted_jobs]
        if not jobs:
            return ""
        more = f" and {len(jobs) - _MOST_JOBS} more" if len(jobs) > _MOST_JOBS else ""
        return (
            f"series of the jobs {', '.join(jobs[:_MOST_JOBS])}{more} of Prometheus can claim any namespace:"
            " set enforcedNamespaceLabel, or list the job in prometheus.trustedJobs"
        )

    async def _answer(
        self,
        method: str,
        path: str,
        data: Mapping[str, str] | None = None,
        *,
        limit_bytes: int = _LIMIT_BYTES,
    ) -> bytes:
        """Return the body of a response. Raises UnreadableMetricsError for an error code."""
        assert self._session is not None, "enter the source before asking"
        url = f"{self._url}/{path}"
        arguments = await self._files.arguments(is_encrypted=url.startswith("https:"))
        async with self._session.request(
            method, url, data=data, allow_redirects=False, **arguments
        ) as response:
            body = await read_bounded(response, limit_bytes)
        if response.status != _OK:
            raise (RefusedQueryError if response.status in _REFUSED else UnreadableMetricsError)(
                f"HTTP {response.status}: {body[:200].decode(errors='replace')}"
            )
        return body


@dataclass(frozen=True, slots=True)
class PodBatch:
    """Pods that are queried together."""

    pods: tuple[Key, ...]
    is_part: bool = False
    """Whether they are part of one namespace's pods; otherwise they are all pods of their namespaces."""

    @property
    def matchers(self) -> str:
        """The label matchers of a query. Pods are listed only if the batch is part of a namespace."""
        namespaces = f"namespace=~{_any(sorted({namespace for namespace, _ in self.pods}))}"
        return f"{namespaces},pod=~{_any([name for _, name in self.pods])}" if self.is_part else namespaces

    @property
    def halves(self) -> tuple[PodBatch, ...]:
        """Two batches of whole namespaces, or of pods of a single one if they are listed; else none."""
        if self.is_part:
            first = self.pods[: len(self.pods) // 2]
        else:
            namespaces = sorted({namespace for namespace, _ in self.pods})
            chosen = frozenset(namespaces[: len(namespaces) // 2])
            first = tuple(key for key in self.pods if key[0] in chosen)
        batch_keys = frozenset(first)
        rest = tuple(key for key in self.pods if key not in batch_keys)
        return (PodBatch(first, self.is_part), PodBatch(rest, self.is_part)) if first else ()


async def _of_each(
    batches: Sequence[PodBatch], ask: Callable[[PodBatch], Awaitable[T | str]]
) -> dict[Key, T | str]:
    """Return the answer for each pod.

    A refused batch is asked again in halves, so that the metrics of one namespace affect no other.
    """
    answers = await asyncio.gather(*(ask(batch) for batch in batches))
    refused = [batch for batch, answer in zip(batches, answers, strict=True) if isinstance(answer, _Refusal)]
    results = {key: answer for batch, answer in zip(batches, answers, strict=True) for key in batch.pods}
    halves = [half for batch in refused for half in batch.halves]
    return results | (await _of_each(halves, ask) if halves else {})


def _looks_by_pod(answer: _Answers, names: Mapping[Key, frozenset[str]]) -> Mapping[Key, PodExposure]:
    """Return what each pod exposes of the metrics with these names."""
    looks = {}
    for key, series_of_pod in answer.values.items():
        series, age_seconds = of_one_origin_each(series_of_pod, answer.ages.get(key, ()))
        if series and math.isfinite(age_seconds):
            exposed = exposed_series(series, names.get(key, frozenset()))
            looks[key] = PodExposure(answer.asked_seconds - age_seconds, exposed)
    return looks


class _Refusal(str):
    """The message about a query whose metrics or result are the cause; one for fewer pods may succeed."""

    __slots__ = ()


def _failure(error: Exception) -> str:
    text = f"Prometheus: {cause_of(error)}"
    return _Refusal(text) if isinstance(error, (RefusedQueryError, OversizedBodyError)) else text


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answers:
    """The responses for the pods of a batch."""

    values: Mapping[Key, Sequence[Series]]
    ages: Mapping[Key, Sequence[Series]]
    asked_seconds: float


def _answers_of(times: Sequence[Sample], values: Sequence[Sample], *, asked_seconds: float) -> _Answers:
    return _Answers(
        values=by_pod(values_of(values)), ages=by_pod(ages_of(times)), asked_seconds=asked_seconds
    )


def batches_of(pods: Sequence[Json]) -> list[PodBatch]:
    """Return pods in batches of whole namespaces, where no two consecutive batches would fit into one."""
    by_namespace: dict[str, list[Key]] = defaultdict(list)
    for pod in pods:
        key = key_of(pod)
        by_namespace[key[0]].append(key)
    batches: list[PodBatch] = []
    held: tuple[Key, ...] = ()
    for _, keys in sorted(by_namespace.items()):
        names = tuple(sorted(keys))
        if len(names) > PODS_OF_A_BATCH:
            starts = range(0, len(names), PODS_OF_A_BATCH)
            batches += [PodBatch(names[start : start + PODS_OF_A_BATCH], is_part=True) for start in starts]
        elif len(held) + len(names) > PODS_OF_A_BATCH:
            batches.append(PodBatch(held))
            held = names
        else:
            held += names
    return [*batches, PodBatch(held)] if held else batches


def _any(names: Sequence[str]) -> str:
    return json.dumps("|".join(_escape(name) for name in names))


def _escape(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: "\\" + match[0], name)
