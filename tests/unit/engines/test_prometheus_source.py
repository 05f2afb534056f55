"""Queries to Prometheus, and rejection of unusable responses."""

from __future__ import annotations

import asyncio
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
from support.served import served

from controller.engines.endpoints import question
from controller.engines.prometheus import PODS_OF_A_BATCH, PrometheusSource, batches_of
from controller.engines.readings import parse_exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from apiserver.schema.json import Json

EVALUATED = 1_000_000.0
"""The time by Prometheus' clock, which differs much from the local one."""

NOW = 1_700_000_000.0


def pod(namespace: str = "ns", name: str = "p") -> Json:
    """Return a pod with namespace and name only."""
    return {"metadata": {"namespace": namespace, "name": name}}


def vector(samples: list[tuple[dict[str, str], str]]) -> bytes:
    """Return a response to an instant query."""
    result = [{"metric": labels, "value": [EVALUATED, value]} for labels, value in samples]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def values(text: str, **labels: str) -> list[tuple[dict[str, str], str]]:
    """Return the samples of an exposition as Prometheus stores them."""
    return [
        ({"__name__": item.name, **item.labels, "pod": "p", **labels}, str(item.value))
        for item in parse_exposition(text)
    ]


class Prometheus:
    """A stub that answers instant queries with the series of one exposition, in every queried namespace."""

    def __init__(self, text: str = VLLM, *, age_seconds: float = 7.0) -> None:
        self.text = text
        self.age_seconds = age_seconds
        self.pods: dict[str, list[str]] = {}
        """Pod names by namespace; the default is one pod `p`."""

        self.queries: list[str] = []
        self.most_pods = 0
        """The largest number of pods in one response."""

        self.tokens: set[str | None] = set()
        self.garbage: bytes | None = None
        self.refused = ""
        """A namespace for which every query is refused."""

        self.is_slow = False
        """Whether queries without a selector have no response."""

        self.has_slow = asyncio.Event()
        """Set with the first of them."""

        self.is_over = asyncio.Event()
        """Set in the end, as a server waits for its handlers."""

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one query."""
        query = str((await request.post())["query"])
        self.queries.append(query)
        self.tokens.add(request.headers.get("Authorization"))
        if self.is_slow and "{" not in query:
            self.has_slow.set()
            await self.is_over.wait()
        if self.garbage is not None:
            return web.Response(body=self.garbage)
        (matcher,) = set(re.findall(r'namespace=~"([^"]*)"', query))
        names = re.search(r',pod=~("[^"]*")', query)
        wanted = re.compile(json.loads(names[1]) if names else ".*")
        if self.refused in matcher.split("|"):
            return web.Response(status=400, text="bad_data")
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
        """Serve, and yield a source that queries this server."""
        async with (
            served(self.answer, path="/api/v1/query") as port,
            PrometheusSource(f"http://127.0.0.1:{port}", clock=lambda: NOW, **options) as source,
        ):
            try:
                yield source
            finally:
                self.is_over.set()


async def test_the_age_of_a_reading_is_computed_by_the_clock_of_prometheus() -> None:
    """That clock may differ from the local one."""
    async with Prometheus(age_seconds=42).source() as source:
        scraped = await source.scrape([pod()])

    assert scraped.failures == {}
    assert scraped.readings["ns", "p"].time_seconds == NOW - 42
    assert scraped.readings["ns", "p"].waiting == 7


async def test_pods_of_two_hundred_namespaces_are_queried_in_one_batch() -> None:
    """A batch needs two queries, whatever the number of namespaces."""
    prometheus = Prometheus()
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(f"ns-{number}") for number in range(200)])

    assert len(scraped.readings) == 200
    assert len(prometheus.queries) == 2


@pytest.mark.parametrize("namespaces", [1000, 7, 1])
async def test_a_thousand_pods_need_a_bounded_number_of_queries(namespaces: int) -> None:
    """The bound also holds if each pod has its own namespace."""
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
def test_batches_are_bounded_in_size_and_number_and_contain_every_pod_once(sizes: list[int]) -> None:
    """Only namespaces that exceed a batch are split, and their pods are queried by name."""
    pods = [pod(f"ns-{place}", f"p-{number}") for place, size in enumerate(sizes) for number in range(size)]

    batches = batches_of(pods)

    assert all(0 < len(batch.pods) <= PODS_OF_A_BATCH for batch in batches)
    assert len(batches) <= 2 * len(pods) / PODS_OF_A_BATCH + 1
    assert sorted(key for batch in batches for key in batch.pods) == sorted(
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in pods
    )
    torn = {namespace for batch in batches if batch.is_part for namespace, _ in batch.pods}
    assert torn == {f"ns-{place}" for place, size in enumerate(sizes) if size > PODS_OF_A_BATCH}


async def test_a_namespace_too_large_for_one_response_is_queried_in_parts() -> None:
    """A response of 64 MiB, the limit, would hold some 5,000 engines."""
    prometheus = Prometheus()
    pods = [pod(name=f"chat.{number}") for number in range(2 * PODS_OF_A_BATCH + 1)] + [pod("other")]
    prometheus.pods["ns"] = [item["metadata"]["name"] for item in pods[:-1]]
    async with prometheus.source() as source:
        scraped = await source.scrape(pods)

    assert (len(scraped.readings), scraped.failures) == (len(pods), {})
    assert len(prometheus.queries) == 2 * 4
    assert prometheus.most_pods == PODS_OF_A_BATCH


async def test_a_pod_without_series_does_not_affect_others() -> None:
    """It is reported as a failure."""
    prometheus = Prometheus()
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(), pod(name="stranger")])

    assert list(scraped.readings) == [("ns", "p")]
    assert "no series of vLLM or SGLang with this pod's name" in scraped.failures["ns", "stranger"]


@pytest.mark.parametrize(
    ("text", "age_seconds", "want"),
    [
        pytest.param(VLLM.replace(" 3.0", " NaN"), 7, "is nan", id="NaN"),
        pytest.param(without(VLLM, "vllm:inter"), 7, "missing: vllm:inter", id="a series is missing"),
        pytest.param(VLLM, 100_000, "more than a day old", id="too old"),
        pytest.param(VLLM, float("nan"), "more than a day old", id="an invalid timestamp"),
    ],
)
async def test_unusable_values_are_a_failure_with_its_reason(
    text: str, age_seconds: float, want: str
) -> None:
    """The pod has no reading."""
    async with Prometheus(text, age_seconds=age_seconds).source() as source:
        scraped = await source.scrape([pod()])

    assert scraped.readings == {}
    assert want in scraped.failures["ns", "p"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="an empty body"),
        pytest.param(b"<html>", id="an HTML page"),
        pytest.param(b'{"status":"error"}', id="an error with status 200"),
        pytest.param(b'{"data":{"resultType":"scalar","result":[1,"2"]}}', id="a scalar"),
        pytest.param(b'{"data":{"result":[{"metric":{},"value":[1]}]}}', id="an incomplete sample"),
        pytest.param(
            b'{"data":{"result":[{"metric":{"a":1},"value":[1,"1"]}]}}', id="a label that is not a string"
        ),
        pytest.param(b'{"data":{"result":[]}}', id="no series"),
        pytest.param(b"[" * 100_000, id="deeply nested brackets"),
        pytest.param(b"\xff\xfe", id="invalid UTF-8"),
    ],
)
async def test_an_invalid_response_is_a_failure_for_every_pod_of_the_query(body: bytes) -> None:
    """No exception is raised."""
    prometheus = Prometheus()
    prometheus.garbage = body
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(), pod(name="q")])

    assert (scraped.readings, set(scraped.failures)) == ({}, {("ns", "p"), ("ns", "q")})


async def test_the_metrics_of_one_namespace_affect_no_other() -> None:
    """A refused query is asked again for fewer namespaces, until only that one fails."""
    prometheus = Prometheus()
    prometheus.refused = "ns-7"
    pods = [pod(f"ns-{number}") for number in range(64)]
    async with prometheus.source() as source:
        scraped = await source.scrape(pods)

    assert list(scraped.failures) == [("ns-7", "p")]
    assert "HTTP 400" in scraped.failures["ns-7", "p"]
    assert len(scraped.readings) == 63
    assert len(prometheus.queries) <= 32


async def test_a_query_that_fails_for_another_reason_is_not_repeated() -> None:
    """An unavailable Prometheus gets no additional requests."""
    prometheus = Prometheus()
    prometheus.garbage = b"not json"
    async with prometheus.source() as source:
        scraped = await source.scrape([pod(f"ns-{number}") for number in range(8)])

    assert len(scraped.failures) == 8
    assert len(prometheus.queries) == 1


async def test_a_long_query_for_part_of_a_namespace_is_split_by_pod() -> None:
    """Queries for more pods than a batch list their names, once for each metric."""
    prometheus = Prometheus()
    pods = [pod("ns", f"{'x' * 60}-{number}") for number in range(PODS_OF_A_BATCH + 1)]
    names = [f"m{number}" for number in range(60)]
    async with prometheus.source() as source:
        exposures = await source.expose([question(item, port=1, path="/", names=names) for item in pods])

    assert {*exposures.failures.values()} == {"Prometheus has no metrics of this pod"}
    assert max(map(len, prometheus.queries)) < 1 << 20


async def test_a_query_for_too_many_metrics_is_split_by_namespace() -> None:
    """Only the namespace that names so many has no values."""
    prometheus = Prometheus()
    many = [f"{'x' * 200}{number}" for number in range(3000)]
    asked = [
        question(pod("ns-1"), port=1, path="/", names=["vllm:num_requests_waiting"]),
        question(pod("ns-2"), port=1, path="/", names=many),
    ]
    async with prometheus.source() as source:
        exposures = await source.expose(asked)

    assert list(exposures.looks) == [asked[0].endpoint]
    assert "the query has" in exposures.failures[asked[1].endpoint]


SERIES = {
    "two series": (vector([({"a": "1"}, "2"), ({"a": "2"}, "0.5")]), [({"a": "1"}, 2.0), ({"a": "2"}, 0.5)]),
    "no series": (vector([]), []),
    "a value that is no number": (vector([({}, "NaN")]), "Prometheus: a value is not a number"),
    "no JSON": (b"?", "Prometheus: "),
}


@pytest.mark.parametrize(("body", "want"), SERIES.values(), ids=SERIES.keys())
async def test_an_expression_has_series_or_an_error(
    body: bytes, want: list[tuple[dict[str, str], float]] | str
) -> None:
    """No series is no error, as those of requests appear with the first one."""
    stub = Prometheus()
    stub.garbage = body
    async with stub.source() as source:
        (answer,) = (await source.evaluate({"sum(queue_size)"})).values()

    assert stub.queries == ["sum(queue_size)"]
    if isinstance(answer, str):
        assert isinstance(want, str)
        assert answer.startswith(want)
    else:
        assert [(item.labels, item.value) for item in answer] == want


async def test_slow_expressions_take_the_time_of_one_query_together() -> None:
    """Each timeout delays the decisions of all models, so a hundred may not follow one another."""
    stub = Prometheus()
    stub.is_slow = True
    async with stub.source(timeout_seconds=0.5) as source:
        answers = await source.evaluate({f"sum(queue_{number})" for number in range(100)})

    assert len(answers) == 100
    assert all(isinstance(answer, str) for answer in answers.values())
    assert len(stub.queries) < 10


async def test_slow_expressions_do_not_delay_queries_for_engines() -> None:
    """Users write the former, and everybody needs the latter."""
    stub = Prometheus()
    stub.is_slow = True
    async with stub.source(timeout_seconds=30.0) as source:
        slow = asyncio.create_task(source.evaluate({f"sum(queue_{number})" for number in range(10)}))
        await stub.has_slow.wait()
        scraped = await source.scrape([pod()])
        slow.cancel()

    assert len(scraped.readings) == 1


async def test_with_tenants_expressions_are_not_evaluated() -> None:
    """An expression can read the series of all namespaces."""
    stub = Prometheus()
    async with stub.source(trusted_jobs=frozenset()) as source:
        (answer,) = (await source.evaluate({"sum(queue_size)"})).values()

    assert "with tenants, expressions in annotations are not evaluated" in str(answer)
    assert stub.queries == []
