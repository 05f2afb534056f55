"""Engine metrics that are read from a real Prometheus."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml
from prometheus_client import CollectorRegistry, Gauge, start_http_server
from support.documents import example
from support.manifests import deployment, listed
from support.monitoring import BadNews, panel_queries
from support.stub_engine import StubEngine

from controller.engines.endpoints import QUEUE_EXPRESSION, EndpointMemory, PickerQueue, question
from controller.engines.prometheus import PrometheusSource
from controller.policies.measuring import ExposedMetric
from controller.policies.policy import Value
from hack.controlplane import ControlPlane
from hack.controlplane.nodes import KwokNode, create_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.engines.scraping import ScrapeResult

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-L4"
DESIRED = ("stowplan_desired_replicas", "Granted.", ("namespace", "variant_name", "accelerator_type"))
SAVED = ("stowplan_advisory_saved_cost", "Advised.", ("namespace", "variant_name"))
POLL_SECONDS = 0.2
"""Time between two queries; Prometheus scrapes every two seconds."""

SCRAPED = {"prometheus.io/scrape": "true", "prometheus.io/port": "8000"}


@pytest.fixture(scope="module")
def monitored() -> Iterator[ControlPlane]:
    """Yield a control plane with Prometheus and one Running pod that it scrapes."""
    with ControlPlane(prometheus=True) as started:
        create_nodes(started, [KwokNode(name="n1", accelerator=PRODUCT, accelerator_count=2)])
        engine = deployment("chat", product=PRODUCT, accelerators=1, annotations=SCRAPED)
        started.kubectl("apply", "--filename=-", input=listed(engine))
        started.kubectl("wait", "deploy/chat", "--for=jsonpath={.status.readyReplicas}=1", "--timeout=60s")
        yield started


def running_pods(control_plane: ControlPlane) -> list[dict[str, Any]]:
    """Return the pods of the default namespace."""
    found: list[dict[str, Any]] = json.loads(control_plane.kubectl("get", "pods", "--output=json").stdout)[
        "items"
    ]
    return found


async def ask_until_known(control_plane: ControlPlane, pods: list[dict[str, Any]]) -> ScrapeResult:
    """Query until Prometheus has series of every pod, for at most a minute."""
    async with asyncio.timeout(60), PrometheusSource(control_plane.prometheus_url) as source:
        while True:
            scraped = await source.scrape(pods)
            if not scraped.failures:
                return scraped
            await asyncio.sleep(POLL_SECONDS)


async def test_readings_have_the_time_of_their_scrape(monitored: ControlPlane) -> None:
    """Prometheus returns the pod's values, which are found by the pod's name."""
    (pod,) = running_pods(monitored)
    with StubEngine(pod["status"]["podIP"], model="m", usage=0.25, waiting=3):
        scraped = await ask_until_known(monitored, [pod])

    reading = scraped.readings["default", pod["metadata"]["name"]]
    assert (reading.waiting, reading.kv_tokens) == (3, 16_000)
    assert reading.model_names == {"m"}
    assert reading.time_seconds > 1_700_000_000


async def test_a_job_whose_series_can_claim_any_namespace_is_refused(monitored: ControlPlane) -> None:
    """Here, labels of a pod replace those of its target, unless its job is trusted."""
    (pod,) = running_pods(monitored)
    with StubEngine(pod["status"]["podIP"], model="m", usage=0.25, waiting=3):
        await ask_until_known(monitored, [pod])
        scraped = []
        for trusted in (frozenset[str](), frozenset({"pods"})):
            async with PrometheusSource(monitored.prometheus_url, trusted_jobs=trusted) as source:
                scraped.append(await source.scrape([pod]))

    (reason,) = scraped[0].failures.values()
    assert reason.startswith("series of the jobs pods of Prometheus can claim any namespace")
    assert (len(scraped[1].readings), scraped[1].failures) == (1, {})


async def test_metrics_named_like_keywords_do_not_affect_others(monitored: ControlPlane) -> None:
    """A policy may name any metric, and the policies of all namespaces are queried together."""
    (pod,) = running_pods(monitored)
    keywords = ("bool", "by", "on", "ignoring", "group_left", "offset", "inf", "NaN", "atan2", "start")
    waiting = "vllm:num_requests_waiting"
    asked = [question(pod, port=8000, path="/metrics", names=[waiting, *keywords])]
    with StubEngine(pod["status"]["podIP"], model="m", usage=0.25, waiting=3):
        await ask_until_known(monitored, [pod])
        async with PrometheusSource(monitored.prometheus_url) as source:
            exposures = await source.expose(asked)

    assert exposures.failures == {}
    assert exposures.looks[asked[0].endpoint].exposed == {waiting: ExposedMetric(value=3.0)}


async def test_every_panel_has_data(monitored: ControlPlane) -> None:
    """With bad values of all metrics, no query is without a result."""
    (pod,) = running_pods(monitored)
    registry = CollectorRegistry()
    registry.register(BadNews())
    with serving(registry, pod):
        for query in panel_queries().values():
            assert await found(monitored, query), query


async def test_the_documented_query_for_keda_skips_advisory_variants(monitored: ControlPlane) -> None:
    """The variant is in another namespace than the controller's pod, so Prometheus renames its labels."""
    (pod,) = running_pods(monitored)
    scaled = yaml.safe_load(example("docs/installing.md", "ScaledObject"))
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    registry = CollectorRegistry()
    desired = Gauge(*DESIRED, registry=registry)
    for name in ("llama-8b-l40s", "advised"):
        desired.labels("chat", name, "L40S").set(5)
    Gauge(*SAVED, registry=registry).labels("chat", "advised").set(0)
    with serving(registry, pod):
        followed = await found(monitored, query)
        advised = await found(monitored, f"{query} or vector(0)".replace("llama-8b-l40s", "advised"))

    assert (followed, advised) == (["5"], ["0"])


async def test_the_queue_of_an_endpoint_picker_counts_by_its_namespace_and_model(
    monitored: ControlPlane,
) -> None:
    """Both names of the series are asked for at once; a picker without a queue is known, too."""
    (pod,) = running_pods(monitored)
    registry = CollectorRegistry()
    for name in ("llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size"):
        queue = Gauge(name, "Held.", ("fairness_id", "inference_pool", "model_name"), registry=registry)
        queue.labels("a", "pool", "llama").set(2)
        queue.labels("b", "pool", "llama").set(0)
        queue.labels("a", "idle", "other").set(0)
    saturation = Gauge(
        "llm_d_epp_flow_control_pool_saturation", "Of 1.", ("inference_pool",), registry=registry
    )
    saturation.labels("unused").set(1)
    memory = EndpointMemory()
    models = {
        name: PickerQueue(namespace="default", model_id=name, pools=frozenset([pool]))
        for name, pool in {"llama": "", "other": "", "new": "unused", "none": "absent"}.items()
    }
    with serving(registry, pod):
        await found(monitored, QUEUE_EXPRESSION)
        async with PrometheusSource(monitored.prometheus_url) as source:
            await memory.ask(models.values(), source, now_seconds=0.0)
    values = {name: memory.activity(queue, (), now_seconds=0.0) for name, queue in models.items()}

    assert values == {name: (Value(value=2.0 if name == "llama" else 0.0),) for name in models}
    assert [name for name, queue in models.items() if memory.is_reported(queue)] == ["llama", "other", "new"]


@contextmanager
def serving(registry: CollectorRegistry, pod: dict[str, Any]) -> Iterator[None]:
    """Serve metrics as a pod."""
    server, thread = start_http_server(8000, addr=pod["status"]["podIP"], registry=registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def found(control_plane: ControlPlane, query: str) -> list[str]:
    """Query until there is a result, for at most a minute; return the values of all series."""
    async with asyncio.timeout(60):
        while True:
            if values := await answered(control_plane, query):
                return values
            await asyncio.sleep(POLL_SECONDS)


async def answered(control_plane: ControlPlane, query: str) -> list[str]:
    """Return the current values of all series of a query."""
    url = f"{control_plane.prometheus_url}/api/v1/query"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params={"query": query}) as response,
    ):
        answer = await response.json()
    return [series["value"][1] for series in answer["data"]["result"]]


async def test_a_pod_without_series_is_reported_as_a_failure(monitored: ControlPlane) -> None:
    """A missing value is never zero."""
    stranger = {"metadata": {"namespace": "default", "name": "stranger"}}

    async with PrometheusSource(monitored.prometheus_url) as source:
        scraped = await source.scrape([stranger])

    assert scraped.readings == {}
    assert "no series of vLLM or SGLang with this pod's name" in scraped.failures["default", "stranger"]


async def test_an_unreachable_prometheus_is_a_failure_for_every_pod() -> None:
    """No exception is raised."""
    pod = {"metadata": {"namespace": "default", "name": "chat"}}

    async with PrometheusSource("http://127.0.0.1:1", timeout_seconds=2) as source:
        scraped = await source.scrape([pod])

    assert scraped.failures["default", "chat"].startswith("Prometheus: ")
