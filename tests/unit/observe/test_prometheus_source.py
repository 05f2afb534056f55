"""What Prometheus is asked, and what its answers may not do."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.engine_expositions import VLLM, without

from controller.observe.prometheus import PODS_OF_A_BATCH, PrometheusSource, batched
from controller.observe.readings import parse_exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from apiserver.schema.json import Json

EVALUATED = 1_000_000.0
"""By Prometheus' clock, which goes wrong by far."""

NOW = 1_700_000_000.0


def pod(namespace: str = "ns", name: str = "p") -> Json:
    """Return a pod, as far as it matters here."""
    return {"metadata": {"namespace": namespace, "name": name}}


def vector(samples: list[tuple[dict[str, str], str]]) -> bytes:
    """Return an answer to an instant query."""
    result = [{"metric": labels, "value": [EVALUATED, value]} for labels, value in samples]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def values(text: str, **labels: str) -> list[tuple[dict[str, str], str]]:
    """Return the samples of an exposition as Prometheus has them."""
    return [
        ({"__name__": item.name, **item.labels, "pod": "p", **labels}, str(item.value))
        for item in parse_exposition(text)
    ]


class Prometheus:
    """Answers instant queries for the series of one exposition, in every namespace that is asked about."""

    def __init__(self, text: str = VLLM, *, age_seconds: float = 7.0) -> None:
        self.text = text
        self.age_seconds = age_seconds
        self.pods: dict[str, list[str]] = {}
        """Names by namespace; one pod `p` where nothing is said."""

        self.queries: list[str] = []
        self.most_pods = 0
        """In one answer."""

        self.tokens: set[str | None] = set()
        self.garbage: bytes | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one query."""
        query = str((await request.post())["query"])
        self.queries.append(query)
        self.tokens.add(request.headers.get("Authorization"))
        if self.garbage is not None:
            return web.Response(body=self.garbage)
        (matcher,) = set(re.findall(r'namespace=~"([^"]*)"', query))
        names = re.search(r',pod=~("[^"]*")', query)
        wanted = re.compile(json.loads(names[1]) if names else ".*")
        known = values(self.text)
        samples = [
            (labels | {"namespace": name, "pod": pod}, value)
            for name in matcher.split("|")
            for pod in self.pods.get(name, ["p"])
            if wanted.fullmatch(pod)
            for labels, value in known
        ]
        self.most_pods = max(self.most_pods, len(samples) // len(known))
        if query.startswith("timestamp("):
            stamp = str(EVALUATED - self.age_seconds)
            waiting = [labels for labels, _ in samples if labels.pop("__name__").endswith("_waiting")]
            samples = [(labels, stamp) for labels in waiting]
        return web.Response(body=vector(samples))

    @asynccontextmanager
    async def source(self, **options: Any) -> AsyncIterator[PrometheusSource]:
        """Serve, and open a source that asks here."""
        app = web.Application()
        app.router.add_post("/api/v1/query", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with PrometheusSource(url, clock=lambda: NOW, **options) as source:
                yield source
        finally:
            await runner.cleanup()


async def test_a_reading_is_as_old_as_its_scrape_by_the_clock_of_prometheus() -> None:
    """That clock and ours need not agree."""
    async with Prometheus(age_seconds=42).source() as source:
        scraped = await source.scrape([pod()])

    assert scraped.failures == {}
    assert scraped.readings["ns", "p"].time_seconds == NOW - 42
    assert scraped.readings["ns", "p"].waiting == 7


async def test_two_hundred_namespaces_are_one_batch() -> None:
    """Two queries, whatever the number of namespaces."""
    prometheus = Prometheus()
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(f"ns-{number}") for number in range(200)])

    assert len(scraped.readings) == 200
    assert len(prometheus.queries) == 2


@pytest.mark.parametrize("namespaces", [1000, 7, 1])
async def test_a_thousand_pods_are_asked_about_in_a_bounded_number_of_queries(namespaces: int) -> None:
    """Also where each of them is alone in its namespace."""
    prometheus = Prometheus()
    pods = [pod(f"ns-{number % namespaces}", f"p-{number}") for number in range(1000)]
    for item in pods:
        prometheus.pods.setdefault(item["metadata"]["namespace"], []).append(item["metadata"]["name"])
    async with prometheus.source() as source:
        scraped = await source.scrape(pods)

    assert (len(scraped.readings), scraped.failures) == (1000, {})
    assert 0 < len(prometheus.queries) <= 32


@settings(max_examples=often(25))
@given(st.lists(st.integers(1, 4000), max_size=30))
def test_batches_are_small_and_few_and_hold_every_pod_once(sizes: list[int]) -> None:
    """However the pods are spread: pods of a larger namespace are named, smaller ones are never torn."""
    pods = [pod(f"ns-{place}", f"p-{number}") for place, size in enumerate(sizes) for number in range(size)]

    batches = batched(pods)

    assert all(0 < len(batch.pods) <= PODS_OF_A_BATCH for batch in batches)
    assert len(batches) <= 2 * len(pods) / PODS_OF_A_BATCH + 1
    assert sorted(key for batch in batches for key in batch.pods) == sorted(
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in pods
    )
    torn = {namespace for batch in batches if batch.is_part for namespace, _ in batch.pods}
    assert torn == {f"ns-{place}" for place, size in enumerate(sizes) if size > PODS_OF_A_BATCH}


async def test_a_namespace_that_is_too_large_for_one_answer_is_asked_about_in_several() -> None:
    """An answer of 64 MiB would hold some 5,000 engines, and would be refused beyond that."""
    prometheus = Prometheus()
    pods = [pod(name=f"chat.{number}") for number in range(2 * PODS_OF_A_BATCH + 1)] + [pod("other")]
    prometheus.pods["ns"] = [item["metadata"]["name"] for item in pods[:-1]]
    async with prometheus.source() as source:
        scraped = await source.scrape(pods)

    assert (len(scraped.readings), scraped.failures) == (len(pods), {})
    assert len(prometheus.queries) == 2 * 4
    assert prometheus.most_pods == PODS_OF_A_BATCH


async def test_one_pod_that_is_not_known_costs_the_others_nothing() -> None:
    """Nor does one with a value that is no number."""
    prometheus = Prometheus()
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(), pod(name="stranger")])

    assert list(scraped.readings) == [("ns", "p")]
    assert "no series with this pod's name" in scraped.failures["ns", "stranger"]


@pytest.mark.parametrize(
    ("text", "age_seconds", "want"),
    [
        pytest.param(VLLM.replace(" 0.25", " NaN"), 7, "is nan", id="NaN"),
        pytest.param(without(VLLM, "vllm:inter"), 7, "missing: vllm:inter", id="a series is missing"),
        pytest.param(VLLM, 100_000, "more than a day old", id="too old to be believed"),
        pytest.param(VLLM, float("nan"), "more than a day old", id="of no time"),
    ],
)
async def test_what_cannot_be_trusted_is_a_failure(text: str, age_seconds: float, want: str) -> None:
    """With its reason."""
    async with Prometheus(text, age_seconds=age_seconds).source() as source:
        scraped = await source.scrape([pod()])

    assert scraped.readings == {}
    assert want in scraped.failures["ns", "p"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b'{"status":"error"}', id="an error with status 200"),
        pytest.param(b'{"data":{"resultType":"scalar","result":[1,"2"]}}', id="a scalar"),
        pytest.param(b'{"data":{"result":[{"metric":{},"value":[1]}]}}', id="a torn sample"),
        pytest.param(b'{"data":{"result":[{"metric":{"a":1},"value":[1,"1"]}]}}', id="a label that is none"),
        pytest.param(b'{"data":{"result":[]}}', id="nothing is known"),
        pytest.param(b"[" * 100_000, id="a tower of brackets"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
async def test_garbage_is_a_failure_for_every_pod(body: bytes) -> None:
    """And no exception."""
    prometheus = Prometheus()
    prometheus.garbage = body
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(), pod(name="q")])

    assert (scraped.readings, set(scraped.failures)) == ({}, {("ns", "p"), ("ns", "q")})
