"""Scraping of engine pods: allowed addresses, ports, limits and failures."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from support.served import served
from support.stub_engine import exposition

from apiserver.schema.json import Json
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.scraping import ScrapeLimits, Scraper, metrics_url, parse_networks

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


def test_the_preferred_port_is_scraped() -> None:
    """Port names are given in the order of preference."""
    value = pod()
    value["spec"]["containers"].append({"ports": [{"name": "metrics", "containerPort": 9000}]})

    assert metrics_url(value, limits()) == "http://10.0.0.7:9000/metrics"
    assert metrics_url(pod("fd00::7"), limits()) == "http://[fd00::7]:8000/metrics"


@pytest.mark.parametrize(
    ("value", "networks"),
    [
        pytest.param(pod("127.0.0.1"), (), id="loopback"),
        pytest.param(pod("169.254.169.254"), (), id="link-local"),
        pytest.param(pod("evil.example"), (), id="a host name"),
        pytest.param(pod("10.0.0.7"), ("10.1.0.0/16",), id="outside the pods' networks"),
        pytest.param(pod(hostNetwork=True), (), id="the node's network"),
        pytest.param(pod(""), (), id="no address yet"),
        pytest.param(pod() | {"spec": {"containers": [{}]}}, (), id="no declared port"),
    ],
)
def test_only_declared_ports_within_the_pod_networks_are_scraped(
    value: Json, networks: tuple[str, ...]
) -> None:
    """Whatever a tenant writes, no request goes to another address."""
    with pytest.raises(UnreadableMetricsError):
        metrics_url(value, limits(*networks))


async def _redirect(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/elsewhere")


async def _empty(_: web.Request) -> web.StreamResponse:
    return web.Response(text="")


async def _lively(_: web.Request) -> web.StreamResponse:
    return web.Response(text=EXPOSITION)


async def test_unresponsive_pods_do_not_prevent_scraping_others() -> None:
    """Those of its namespace may only have a share of the connections."""
    held = asyncio.Event()

    async def silent(_: web.Request) -> web.StreamResponse:
        await held.wait()
        return web.Response()

    async with served(silent) as deaf, served(_lively) as port, Scraper(limits("127.0.0.0/8")) as scraper:
        pods = [pod("127.0.0.1", port=deaf) for _ in range(8)] + [pod("127.0.0.1", port=port)]
        for number, item in enumerate(pods):
            item["metadata"] = {"namespace": f"ns{number // 8}", "name": f"engine-{number}"}
        scraped = await scraper.scrape(pods)
        held.set()

    assert list(scraped.readings) == [("ns1", "engine-8")]


async def test_each_of_a_thousand_pods_is_scraped_once_per_cycle() -> None:
    """Each pod is requested at its own address, and never twice in a cycle.

    On a machine without CPU time to spare, a late answer may leave some pods to the next cycle.
    """
    asked: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        asked[request.transport.get_extra_info("sockname")[0]] += 1
        return web.Response(text=EXPOSITION)

    async with (
        served(answer, address="0.0.0.0") as port,  # noqa: S104 (each address of the loopback interface)
        Scraper(replace(limits("127.0.0.0/8"), timeout_seconds=30, concurrency=64)) as scraper,
    ):
        pods = [pod(f"127.9.{number // 250}.{number % 250 + 1}", port=port) for number in range(1000)]
        for number, item in enumerate(pods):
            item["metadata"] = {"namespace": "ns", "name": f"engine-{number}"}
        cycles = complete = 0
        while complete < 2:
            scraped, cycles = await scraper.scrape(pods), cycles + 1
            complete += len(scraped.readings) == len(pods)
            assert scraped.readings.keys().isdisjoint(scraped.failures)

    assert asked.keys() == {item["status"]["podIP"] for item in pods}
    assert 2 <= min(asked.values()) <= max(asked.values()) <= cycles


async def test_a_slow_response_times_out_without_affecting_others() -> None:
    """The timeout covers the whole response, even if single bytes keep arriving."""
    held = asyncio.Event()

    async def trickling(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for byte in EXPOSITION.encode():
            await response.write(bytes([byte]))
            with suppress(TimeoutError):
                await asyncio.wait_for(held.wait(), timeout=0.05)
        return response

    async with served(trickling) as slow, served(_lively) as port, Scraper(limits("127.0.0.0/8")) as scraper:
        pods = [pod("127.0.0.1", port=slow), pod("127.0.0.1", port=port)]
        pods[1]["metadata"] = {"namespace": "ns", "name": "other"}
        for _ in range(200):  # the answer of a late pod counts in a later round
            scraped = await scraper.scrape(pods)
            if scraped.failures["ns", "engine"].startswith("no answer: not in time"):
                break
        held.set()

    assert list(scraped.readings) == [("ns", "other")]
    assert scraped.failures["ns", "engine"].startswith("no answer: not in time")


async def test_reading_stops_at_the_size_limit_of_a_response() -> None:
    """The chunked response of 100 MiB does not declare its length."""
    sent = 0

    async def huge(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1600):
            await response.write(b"x" * (1 << 16))
            sent += 1 << 16
        return response

    async with served(huge) as port, Scraper(limits("127.0.0.0/8")) as scraper:
        scraped = await scraper.scrape([pod("127.0.0.1", port=port)])

    assert "longer than 65536 bytes" in scraped.failures["ns", "engine"]
    assert sent < 32 << 20


async def test_several_unnamed_ports_are_rejected() -> None:
    """None of them is guessed."""
    value = pod()
    value["spec"]["containers"] = [{"ports": [{"containerPort": 8000}, {"containerPort": 9000}]}]

    with pytest.raises(UnreadableMetricsError, match="no container port is named"):
        metrics_url(value, limits())


@pytest.mark.parametrize(
    ("handler", "want"),
    [
        pytest.param(_redirect, "HTTP 302", id="a redirect"),
        pytest.param(_empty, "no series of vLLM", id="an empty response"),
    ],
)
async def test_an_invalid_response_is_a_failure_with_its_reason(handler: Handler, want: str) -> None:
    """The pod has no reading."""
    async with served(handler) as port, Scraper(limits("127.0.0.0/8")) as scraper:
        scraped = await scraper.scrape([pod("127.0.0.1", port=port)])

    assert scraped.readings == {}
    assert want in scraped.failures["ns", "engine"]
