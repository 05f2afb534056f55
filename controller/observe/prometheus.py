"""Asks a Prometheus that already scrapes the engines, instead of the pods.

Two instant queries for each namespace: the values, and when each was scraped, since an instant query would
otherwise pass a five-minute-old sample off as fresh. The namespace matcher is always ours.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import aiohttp

from apiserver.schema.json import Json
from controller.observe.bounded import read_bounded
from controller.observe.readings import Reading, reading_of
from controller.observe.said import Series, UnreadableMetricsError
from controller.observe.scraping import Key, Scraped
from controller.observe.series import NAMES, Kind, Meaning, names_of

_OK: Final = 200
_LIMIT_BYTES: Final = 64 << 20


class PrometheusSource:
    """Reads engine series from one Prometheus. Use as `async with PrometheusSource(...) as source`."""

    def __init__(
        self, url: str, *, ca_file: str = "", token_file: str = "", timeout_seconds: float = 10.0
    ) -> None:
        self._url = url.rstrip("/")
        self._ca_file = ca_file
        self._token_file = token_file
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        trust = ssl.create_default_context(cafile=self._ca_file or None)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust),
            timeout=aiohttp.ClientTimeout(total=self._timeout_seconds),
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def scrape(self, pods: Sequence[Json]) -> Scraped:
        """Return the readings of the pods that Prometheus knows, and why there are none of the others."""
        namespaces = sorted({pod["metadata"]["namespace"] for pod in pods})
        answers = await asyncio.gather(*(self._namespace(name) for name in namespaces))
        found = dict(zip(namespaces, answers, strict=True))
        readings: dict[Key, Reading] = {}
        failures: dict[Key, str] = {}
        for pod in pods:
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            answer = found[namespace]
            try:
                readings[namespace, name] = _reading(answer, name)
            except UnreadableMetricsError as error:
                failures[namespace, name] = str(error)
        return Scraped(readings=readings, failures=failures)

    async def _namespace(
        self, namespace: str
    ) -> tuple[Mapping[str, list[Series]], Mapping[str, float]] | str:
        matcher = json.dumps(namespace, ensure_ascii=False)
        names = "|".join(NAMES)
        try:
            values = await self._query(f'{{__name__=~"{names}",namespace={matcher}}}')
            waiting = "|".join(name for kind in Kind for name in names_of(kind, Meaning.WAITING))
            times = await self._query(f'timestamp({{__name__=~"{waiting}",namespace={matcher}}})')
        except (aiohttp.ClientError, TimeoutError, OSError, UnreadableMetricsError) as error:
            return f"Prometheus: {type(error).__name__}: {error}"
        return _by_pod(values), {item.labels.get("pod", ""): item.value for item in times}

    async def _query(self, expression: str) -> list[Series]:
        assert self._session is not None, "enter the source before asking"
        headers = {"Authorization": f"Bearer {await self._token()}"} if self._token_file else {}
        url = f"{self._url}/api/v1/query"
        async with self._session.post(
            url, data={"query": expression}, headers=headers, allow_redirects=False
        ) as response:
            if response.status != _OK:
                raise UnreadableMetricsError(f"HTTP {response.status}")
            body = await read_bounded(response, _LIMIT_BYTES)
        return _vector(body)

    async def _token(self) -> str:
        text = await asyncio.to_thread(Path(self._token_file).read_text, encoding="utf-8")
        return text.strip()


def _vector(body: bytes) -> list[Series]:
    try:
        result = json.loads(body)["data"]["result"]
        return [
            Series(
                name=item["metric"].get("__name__", ""),
                labels=item["metric"],
                value=float(item["value"][1]),
            )
            for item in result
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise UnreadableMetricsError(f"no vector of samples: {error}") from error


def _by_pod(series: Sequence[Series]) -> Mapping[str, list[Series]]:
    found: dict[str, list[Series]] = defaultdict(list)
    for item in series:
        found[item.labels.get("pod", "")].append(item)
    return found


def _reading(answer: tuple[Mapping[str, list[Series]], Mapping[str, float]] | str, pod: str) -> Reading:
    if isinstance(answer, str):
        raise UnreadableMetricsError(answer)
    series, times = answer
    if pod not in series or pod not in times:
        raise UnreadableMetricsError("Prometheus has no series with this pod's name in the label `pod`")
    return reading_of(series[pod], time_seconds=times[pod])
