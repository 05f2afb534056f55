"""Metrics pages that one tenant serves to stop or delay the scraping of all others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from aiohttp import web
from support.served import LOOPBACK, served, serving_pod
from support.stub_engine import exposition

from apiserver.schema.json import Json
from controller.engines.endpoints import MOST_NAMES, exposed_in, question
from controller.engines.exposition import MOST_LINES, UnreadableMetricsError
from controller.engines.readings import parse_exposition
from controller.engines.scraping import ParsingTime, Scraper
from controller.policies.measuring import ExposedMetric

_LARGEST_BYTES: Final = 2 << 20
_MOST_CPU_SECONDS: Final = 5.0
"""CPU time for one page; before the limits, these pages took 8 to 32 s."""

_WAITING: Final = "vllm:num_requests_waiting"
GOOD: Final = exposition(model="m", usage=0.5, waiting=1)


def full(line: Callable[[int], str]) -> str:
    """Return the largest page of such lines."""
    size = len(line(10**6)) + 1
    return "\n".join(map(line, range(10**6, 10**6 + _LARGEST_BYTES // size))) + "\n"


_MANY_LABELS: Final = ",".join(f'a{label}=""' for label in range(900))
_QUOTES: Final = '\\"' * 4000
PAGES: Mapping[str, str] = {
    "as many series of different names as fit": full(lambda number: f"{_WAITING}{number} 1"),
    "as many series of one name as fit": full(lambda _: f"{_WAITING} 1"),
    "as many series as are parsed": f'{_WAITING}{{a0="",a1="1"}} 1\n' * MOST_LINES,
    "the longest lines that are parsed": full(lambda number: f"{_WAITING}{{{_MANY_LABELS}}} {number}"),
    "label values that consist of quotes": full(lambda number: f'{_WAITING}{{a="{_QUOTES}"}} {number}'),
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_the_largest_page_takes_a_limited_time(page: str) -> None:
    """It is read or refused, for an engine and for as many metrics as an endpoint may have."""
    names = [
        _WAITING,
        *(f"{_WAITING}1{number}" for number in range(31)),
        *(f'{_WAITING}{{a{number}=""}}' for number in range(MOST_NAMES - 32)),
    ]
    for read in (parse_exposition, lambda text: exposed_in(text, names)):
        before_seconds = time.process_time()
        with suppress(UnreadableMetricsError):
            read(page)
        assert time.process_time() - before_seconds < _MOST_CPU_SECONDS


LIMITS = replace(LOOPBACK, timeout_seconds=5, limit_bytes=_LARGEST_BYTES, concurrency=4)


def pod(name: str, port: int) -> Json:
    """Return a pod of a namespace with its name."""
    return serving_pod(port, namespace=name, name=name)


def serving(text: str) -> AbstractAsyncContextManager[int]:
    """Serve a page at `/metrics`; yields the port."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text)

    return served(answer)


INVALID: Mapping[str, tuple[str, str]] = {
    "a value of 4,000 digits": (f"{_WAITING} {'9' * 4000}\n", "not a Prometheus exposition"),
    "a value of 5,000 digits": (f"{_WAITING} {'9' * 5000}\n", ""),
    "a timestamp of 4,000 digits": (f"{_WAITING} 1 {'9' * 4000}\n", "not a Prometheus exposition"),
    "too many series": (f"{_WAITING} 1\n" * (MOST_LINES + 1), f"at most {MOST_LINES}"),
}


@pytest.mark.parametrize(("page", "why"), INVALID.values(), ids=INVALID.keys())
async def test_a_hostile_page_affects_no_other_pod(page: str, why: str) -> None:
    """Engines and endpoints of bindings are read in the same way."""
    async with serving(page) as bad, serving(GOOD) as good, Scraper(LIMITS) as scraper:
        pods = [pod("evil", bad), pod("good", good)]
        scraped = await scraper.scrape(pods)
        asked = [
            question(item, port=port, path="/metrics", names=[_WAITING])
            for item, port in zip(pods, (bad, good), strict=True)
        ]
        exposures = await scraper.expose(asked)

    assert list(scraped.readings) == [("good", "good")]
    assert why in scraped.failures["evil", "evil"]
    assert exposures.looks[asked[1].endpoint].exposed == {_WAITING: ExposedMetric(value=1.0)}
    look = exposures.looks.get(asked[0].endpoint)
    assert look is None or not look.exposed
    assert why in exposures.failures.get(asked[0].endpoint, why)


async def test_an_endpoint_with_too_many_metrics_is_a_failure() -> None:
    """Bindings share the page of a pod in front of them, each with a metric of its own."""
    async with serving(GOOD) as port, Scraper(LIMITS) as scraper:
        names = [f'{_WAITING}{{a="{number}"}}' for number in range(MOST_NAMES + 1)]
        asked = [question(pod("evil", port), port=port, path="/metrics", names=[name]) for name in names]
        exposures = await scraper.expose(asked)

    assert f"at most {MOST_NAMES}" in exposures.failures[asked[0].endpoint]


class Counted(ThreadPoolExecutor):
    """Threads that count their tasks."""

    tasks = 0

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        """Count a task, and run it."""
        self.tasks += 1
        return super().submit(*arguments, **options)


async def test_pages_are_parsed_apart_from_the_threads_of_planning() -> None:
    """Planning and its statuses use the default threads, in which only credentials are read here."""
    threads = Counted()
    asyncio.get_running_loop().set_default_executor(threads)
    async with serving(GOOD) as port, Scraper(LIMITS) as scraper:
        pods = [pod(f"good-{number}", port) for number in range(5)]
        scraped = await scraper.scrape(pods)
        exposures = await scraper.expose(
            [question(item, port=port, path="/metrics", names=[_WAITING]) for item in pods]
        )

    assert (len(scraped.readings), len(exposures.looks)) == (5, 5)
    assert threads.tasks == 2


def test_a_namespace_with_expensive_pages_costs_others_no_time() -> None:
    """Its remaining pages are failures of this round; those of other namespaces are parsed."""
    now = 0.0

    def clock() -> float:
        return now

    def parse(seconds: float) -> str:
        nonlocal now
        now += seconds
        return "parsed"

    time_left = ParsingTime(["hostile"] * 100 + ["good"] * 2, clock=clock)
    parsed = 0
    for _ in range(100):
        with suppress(UnreadableMetricsError):
            time_left.spend("hostile", parse, 0.5)
            parsed += 1

    assert parsed == (2 + 0.02 * 100) / 0.5
    assert [time_left.spend("good", parse, 0.03) for _ in range(2)] == ["parsed"] * 2


def test_expensive_pages_take_the_time_that_their_namespace_has() -> None:
    """Together they would take 17 s; the one that exceeds the time is parsed to its end."""
    page, number = f"{_WAITING} 1\n" * 18_000, 40
    time_left = ParsingTime(["hostile"] * number)
    began = time.thread_time()
    for _ in range(number):
        with suppress(UnreadableMetricsError):
            time_left.spend("hostile", parse_exposition, page)

    assert time.thread_time() - began < 2 + 0.02 * number + _MOST_CPU_SECONDS


def test_an_invalid_page_uses_the_time_of_its_namespace() -> None:
    """Its parsing may have taken as long as that of a valid one."""
    now = 0.0

    def fail() -> None:
        nonlocal now
        now += 10.0
        raise UnreadableMetricsError("not a Prometheus exposition")

    time_left = ParsingTime(["hostile"], clock=lambda: now)

    for reason in ("not a Prometheus exposition", "pages of this namespace took too long"):
        with pytest.raises(UnreadableMetricsError, match=reason):
            time_left.spend("hostile", fail)
