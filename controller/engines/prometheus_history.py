"""Query the past of engines in a Prometheus: samples as they were scraped, and expressions over time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlsplit

import aiohttp

from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.prometheus import PrometheusSource
from controller.engines.prometheus_responses import matrix, values_of, vector
from controller.engines.requests import CredentialsConfig, OversizedBodyError, cause_of

T = TypeVar("T")

_QUERY_SECONDS: Final = 30.0
_MOST_POINTS: Final = 11_000
"""Maximum points of a series in one response of Prometheus."""

_SHORTEST_SECONDS: Final = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """One series over time."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]
    """Times in seconds since 1970 and finite values, in order."""


def url_problem(text: str) -> str:
    """Return why a text is not the URL of a Prometheus; empty if it can be."""
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_usable = False
    return "" if is_usable else "must be a URL such as http://localhost:9090"


class PrometheusHistory(PrometheusSource):
    """Reads the past from one Prometheus. Use as `async with PrometheusHistory(...) as history`.

    All methods raise UnreadableMetricsError with the reason if there is no usable answer in half a minute.
    """

    def __init__(self, url: str, *, credentials: CredentialsConfig) -> None:
        super().__init__(url, credentials=credentials, timeout_seconds=_QUERY_SECONDS)

    async def samples(self, selector: str, *, end_seconds: float, last_seconds: float) -> list[Course]:
        """Return the samples of all series that a selector names, with the times of their scrapes.

        If they are too many for one response, those of a shorter time before the end are returned.
        """
        while True:
            parameters = {"query": f"{selector}[{math.ceil(last_seconds)}s]", "time": f"{end_seconds:.3f}"}
            try:
                return await self._courses("query", parameters)
            except OversizedBodyError:
                last_seconds /= 2
                if last_seconds < _SHORTEST_SECONDS:
                    raise

    async def evaluate_range(
        self, expression: str, *, begin_seconds: float, end_seconds: float, step_seconds: float
    ) -> list[Course]:
        """Return the values of an expression over time, one for each step."""
        step_seconds = max(step_seconds, (end_seconds - begin_seconds) / _MOST_POINTS)
        parameters = {
            "query": expression,
            "start": f"{begin_seconds:.3f}",
            "end": f"{end_seconds:.3f}",
            "step": f"{step_seconds:.3f}",
        }
        return await self._courses("query_range", parameters)

    async def at(self, expression: str, *, seconds: float) -> Sequence[Series]:
        """Return the values of an expression at a time."""
        parameters = {"query": expression, "time": f"{seconds:.3f}"}
        body = await _with_cause(self._answer("POST", "query", parameters))
        return [item for item in values_of(vector(body)) if math.isfinite(item.value)]

    async def _courses(self, path: str, parameters: Mapping[str, str]) -> list[Course]:
        body = await _with_cause(self._answer("POST", path, parameters))
        # In a thread: a whole response takes seconds.
        ranges = await asyncio.to_thread(matrix, body)
        return [
            Course(
                labels=item.metric, points=tuple(point for point in item.points if math.isfinite(point[1]))
            )
            for item in ranges
        ]


async def _with_cause(answer: Awaitable[T]) -> T:
    """Return an answer. Raises UnreadableMetricsError that names Prometheus as the cause."""
    try:
        return await answer
    except OversizedBodyError:
        raise
    except (aiohttp.ClientError, TimeoutError, OSError, UnreadableMetricsError) as error:
        raise UnreadableMetricsError(f"Prometheus: {cause_of(error).strip()}") from error
