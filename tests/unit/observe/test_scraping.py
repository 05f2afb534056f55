"""Only pods are asked, and only where they say they listen."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from support.stub_engine import exposition

from apiserver.schema.json import Json
from controller.observe.said import UnreadableMetricsError
from controller.observe.scraping import ScrapeLimits, Scraper, metrics_url, parse_networks

EXPOSITION = exposition(model="m", usage=0.5, waiting=1)


def limits(*networks: str, limit_bytes: int = 1 << 16) -> ScrapeLimits:
    """Return limits with the given pod networks."""
    return ScrapeLimits(
        port_names=("metrics", "http"),
        pod_networks=parse_networks(networks),
        timeout_seconds=2,
        limit_bytes=limit_bytes,
        concurrency=4,
    )


def pod(address: str = "10.0.0.7", *, port: int = 8000, name: str = "http", **spec: object) -> Json:
    """Return a pod that listens on one port."""
    return {
        "metadata": {"namespace": "ns", "name": "engine"},
        "spec": {"containers": [{"ports": [{"name": name, "containerPort": port}]}], **spec},
        "status": {"podIP": address},
    }


def test_the_preferred_port_is_asked() -> None:
    """Ports go by name, in the order of preference."""
    value = pod()
    value["spec"]["containers"].append({"ports": [{"name": "metrics", "containerPort": 9000}]})

    assert metrics_url(value, limits()) == "http://10.0.0.7:9000/metrics"
    assert metrics_url(pod("fd00::7"), limits()) == "http://[fd00::7]:8000/metrics"


@pytest.mark.parametrize(
    ("value", "networks"),
    [
        pytest.param(pod("127.0.0.1"), (), id="loopback"),
        pytest.param(pod("169.254.169.254"), (), id="link-local"),
        pytest.param(pod("evil.example"), (), id="a name"),
        pytest.param(pod("10.0.0.7"), ("10.1.0.0/16",), id="outside the pods' networks"),
        pytest.param(pod(hostNetwork=True), (), id="the node's own network"),
        pytest.param(pod(""), (), id="no address yet"),
        pytest.param(pod() | {"spec": {"containers": [{}]}}, (), id="no declared port"),
    ],
)
def test_nobody_but_pods_is_asked(value: Json, networks: tuple[str, ...]) -> None:
    """Whatever a tenant writes, no request goes elsewhere."""
    with pytest.raises(UnreadableMetricsError):
        metrics_url(value, limits(*networks))


async def serve(handler: Handler, *, address: str = "127.0.0.1") -> tuple[web.AppRunner, int]:
    """Start a server with one `/metrics`."""
    app = web.Application()
    app.router.add_get("/metrics", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, address, 0)
    await site.start()
    port: int = runner.addresses[0][1]
    return runner, port


async def _redirect(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/elsewhere")


async def _endless(_: web.Request) -> web.StreamResponse:
    return web.Response(text="x" * 100_000)


async def _empty(_: web.Request) -> web.StreamResponse:
    return web.Response(text="")


async def test_silent_pods_do_not_take_others_with_them() -> None:
    """Whoever waits for its turn has not begun to be silent."""
    held = asyncio.Event()

    async def silent(_: web.Request) -> web.StreamResponse:
        await held.wait()
        return web.Response()

    async def lively(_: web.Request) -> web.StreamResponse:
        return web.Response(text=EXPOSITION)

    deaf, deaf_port = await serve(silent)
    alive, port = await serve(lively)
    pods = [pod("127.0.0.1", port=deaf_port) for _ in range(8)] + [pod("127.0.0.1", port=port)]
    for number, item in enumerate(pods):
        item["metadata"] = {"namespace": "ns", "name": f"engine-{number}"}
    try:
        async with Scraper(replace(limits("127.0.0.0/8"), timeout_seconds=2)) as scraper:
            scraped = await scraper.scrape(pods)
    finally:
        held.set()
        await deaf.cleanup()
        await alive.cleanup()

    assert list(scraped.readings) == [("ns", "engine-8")]


async def test_each_of_a_thousand_pods_is_asked_once_in_a_cycle() -> None:
    """On its own address; two cycles are two requests for each."""
    asked: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        asked[request.transport.get_extra_info("sockname")[0]] += 1
        return web.Response(text=EXPOSITION)

    runner, port = await serve(answer, address="0.0.0.0")  # noqa: S104 (each address of the loopback interface)
    pods = [pod(f"127.9.{number // 250}.{number % 250 + 1}", port=port) for number in range(1000)]
    for number, item in enumerate(pods):
        item["metadata"] = {"namespace": "ns", "name": f"engine-{number}"}
    try:
        async with Scraper(replace(limits("127.0.0.0/8"), timeout_seconds=30, concurrency=64)) as scraper:
            scraped = [await scraper.scrape(pods) for _ in range(2)]
    finally:
        await runner.cleanup()

    assert [(len(item.readings), item.failures) for item in scraped] == [(1000, {})] * 2
    assert asked == Counter({item["status"]["podIP"]: 2 for item in pods})


async def test_an_engine_that_trickles_is_cut_off_and_stops_nobody_else() -> None:
    """A byte now and then keeps a connection alive; time counts from the request to the last byte."""
    held = asyncio.Event()

    async def trickling(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for byte in EXPOSITION.encode():
            await response.write(bytes([byte]))
            with suppress(TimeoutError):
                await asyncio.wait_for(held.wait(), timeout=0.05)
        return response

    async def lively(_: web.Request) -> web.StreamResponse:
        return web.Response(text=EXPOSITION)

    slow, slow_port = await serve(trickling)
    alive, port = await serve(lively)
    pods = [pod("127.0.0.1", port=slow_port), pod("127.0.0.1", port=port)]
    pods[1]["metadata"] = {"namespace": "ns", "name": "other"}
    try:
        async with Scraper(replace(limits("127.0.0.0/8"), timeout_seconds=2)) as scraper:
            scraped = await scraper.scrape(pods)
    finally:
        held.set()
        await slow.cleanup()
        await alive.cleanup()

    assert list(scraped.readings) == [("ns", "other")]
    assert scraped.failures["ns", "engine"].startswith("no answer: TimeoutError")


async def test_an_answer_of_a_hundred_megabytes_is_not_read_to_its_end() -> None:
    """Whether it says how long it is or not."""
    sent = 0

    async def huge(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1600):
            await response.write(b"x" * (1 << 16))
            sent += 1 << 16
        return response

    runner, port = await serve(huge)
    try:
        async with Scraper(limits("127.0.0.0/8")) as scraper:
            scraped = await scraper.scrape([pod("127.0.0.1", port=port)])
    finally:
        await runner.cleanup()

    assert "longer than 65536 bytes" in scraped.failures["ns", "engine"]
    assert sent < 32 << 20


async def test_an_unnamed_port_is_asked_only_where_there_is_no_choice() -> None:
    """Of two ports without a name neither is guessed."""
    value = pod()
    value["spec"]["containers"] = [{"ports": [{"containerPort": 8000}, {"containerPort": 9000}]}]

    with pytest.raises(UnreadableMetricsError, match="no container port is named"):
        metrics_url(value, limits())


@pytest.mark.parametrize(
    ("handler", "want"),
    [
        pytest.param(_redirect, "HTTP 302", id="a redirect is not followed"),
        pytest.param(_endless, "longer than 65536 bytes", id="an endless answer is cut off"),
        pytest.param(_empty, "no series of vLLM", id="an empty answer is no zero"),
    ],
)
async def test_a_bad_answer_is_a_failure_with_its_reason(handler: Handler, want: str) -> None:
    """One bad pod is reported and stops nothing."""
    runner, port = await serve(handler)
    try:
        async with Scraper(limits("127.0.0.0/8")) as scraper:
            scraped = await scraper.scrape([pod("127.0.0.1", port=port)])
    finally:
        await runner.cleanup()

    assert scraped.readings == {}
    assert want in scraped.failures["ns", "engine"]
