"""Rounds of requests to pods of which some are silent or slow, on real servers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest
from aiohttp import web
from support.served import LOOPBACK, served, serving_pod
from support.stub_engine import exposition

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.engines.endpoints import question
from controller.engines.scraping import Scraper
from controller.engines.turns import PodRequest, Turns

PAGE: Final = exposition(model="m", usage=0.5, waiting=1)
HEALTHY: Final = [("good", f"engine-{number}") for number in range(40)]
MOST_ROUNDS: Final = 200
SILENT: Final = [("evil", f"engine-{number}") for number in range(200)]


def pods(keys: Sequence[tuple[str, str]], port: int) -> list[Json]:
    """Return pods that serve at a port."""
    return [serving_pod(port, namespace=namespace, name=name) for namespace, name in keys]


class Engines:
    """A server of metrics that waits before each answer, and counts requests."""

    def __init__(self) -> None:
        self.pause_seconds = 0.0
        self.asked = 0
        self.is_over = asyncio.Event()

    async def answer(self, _: web.Request) -> web.StreamResponse:
        """Answer after a pause, unless the test is over."""
        self.asked += 1
        with suppress(TimeoutError):
            await asyncio.wait_for(self.is_over.wait(), self.pause_seconds)
        return web.Response(text=PAGE)


@asynccontextmanager
async def engines() -> AsyncIterator[tuple[Engines, int]]:
    """Yield a server and its port."""
    made = Engines()
    async with served(made.answer, path="/{path:.*}") as port:
        try:
            yield made, port
        finally:
            made.is_over.set()


def rounds_seconds() -> float:
    """Return the time of the event loop."""
    return asyncio.get_running_loop().time()


async def test_silent_pods_of_one_namespace_delay_no_round() -> None:
    """The first round waits for the first of them, and later ones hardly: one after another took 12 s."""
    async with engines() as (good, port), engines() as (evil, deaf), Scraper(LOOPBACK) as scraper:
        evil.pause_seconds = 60.0
        asked = [*pods(SILENT, deaf), *pods(HEALTHY, port)]
        began = rounds_seconds()
        scraped = [await scraper.scrape(asked) for _ in range(5)]
        took = rounds_seconds() - began

    assert [len(item.readings) for item in scraped] == [len(HEALTHY)] * 5
    assert [len(item.failures) for item in scraped] == [len(SILENT)] * 5
    assert took < 6.0
    assert good.asked == 5 * len(HEALTHY)


async def test_paths_of_one_silent_pod_delay_no_other_endpoint() -> None:
    """Bindings name any number of paths, and each is a request."""
    async with engines() as (_, port), engines() as (evil, deaf), Scraper(LOOPBACK) as scraper:
        evil.pause_seconds = 60.0
        (silent,), healthy = pods(SILENT[:1], deaf), pods(HEALTHY, port)
        asked = [
            *(question(silent, port=deaf, path=f"/{number}", names=["m"]) for number in range(320)),
            *(question(item, port=port, path="/metrics", names=["m"]) for item in healthy),
        ]
        began = rounds_seconds()
        exposures = [await scraper.expose(asked) for _ in range(3)]
        took = rounds_seconds() - began

    assert [len(item.looks) for item in exposures] == [len(HEALTHY)] * 3
    assert took < 4.0
    assert any("more of this pod than 8 endpoints" in why for why in exposures[-1].failures.values())


@pytest.mark.parametrize("pause_seconds", [0.0, 1.2])
async def test_pods_that_were_silent_are_read_again(pause_seconds: float) -> None:
    """Promptly, or later than a round waits for: then, a later round has the reading."""
    async with engines() as (some, port), Scraper(LOOPBACK) as scraper:
        some.pause_seconds = 60.0
        asked = pods(HEALTHY, port)
        assert (await scraper.scrape(asked)).readings == {}
        some.pause_seconds = pause_seconds

        read = set[Key]()
        for _ in range(MOST_ROUNDS):
            read |= (await scraper.scrape(asked)).readings.keys()
            if len(read) == len(HEALTHY):
                break

    assert len(read) == len(HEALTHY)


async def test_the_reason_of_a_silent_pod_stays_the_same() -> None:
    """It is part of a condition, which would otherwise be written in every cycle."""
    async with engines() as (some, port), Scraper(LOOPBACK) as scraper:
        some.pause_seconds = 60.0
        asked, reasons = pods(SILENT[:1], port), list[str]()
        for _ in range(MOST_ROUNDS):
            reasons += (await scraper.scrape(asked)).failures.values()
            if any("not in time" in reason for reason in reasons[:-8]):
                break

    assert [reason for reason in dict.fromkeys(reasons) if "not in time" in reason] == [reasons[-1]]
    assert len(dict.fromkeys(reasons)) == 2


async def test_a_page_that_was_read_is_kept_while_another_pod_is_slow() -> None:
    """Only requests that wait for a connection are given up."""
    turns, is_parsed, is_over, reads = Turns[Key, str](4), asyncio.Event(), asyncio.Event(), Counter[str]()

    def request(name: str, held: asyncio.Event | None) -> PodRequest[str]:
        async def read() -> str:
            reads[name] += 1
            if held:
                await held.wait()
            return name

        async def parse(page: str) -> str:
            await is_parsed.wait()
            return page.upper()

        return PodRequest(read, parse)

    wanted: dict[Key, PodRequest[str]] = {("ns", "a"): request("a", None), ("ns", "b"): request("b", is_over)}
    first = await turns.ask(wanted)
    is_parsed.set()
    second = await turns.ask(wanted)
    is_over.set()
    await turns.close()

    assert ["no answer" in why for why in first.values()] == [True, True]
    assert second["ns", "a"] == "A"
    assert reads == {"a": 1, "b": 1}
