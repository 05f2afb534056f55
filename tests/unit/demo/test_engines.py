"""Simulated engines of pods: addresses, HTTP interface, life cycle and annotations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import aiohttp
import pytest

from controller.simulation.workload import Request
from hack.controlplane.network import free_port
from hack.demo.engines import START_UP_ANNOTATION, EngineHost, UnreadableProfileError, start_up_seconds_of
from hack.demo.phases import SimulatedClock
from hack.demo.traffic import Traffic

if TYPE_CHECKING:
    from apiserver.schema.json import Json

MODEL = "meta/llama-3.1-8b"
_addresses = itertools.count(1)


@pytest.fixture
def address() -> str:
    """Return a loopback address that nothing else in this run uses."""
    return f"127.31.7.{next(_addresses)}"


@pytest.fixture
def port(address: str) -> int:
    """Return a free port on the address."""
    return free_port(address)


def pod(address: str, port: int, *, uid: str = "one") -> Json:
    """Return a ready pod with the annotations of an engine."""
    return {
        "metadata": {
            "name": f"llama-{uid}",
            "uid": uid,
            "annotations": {
                "simulation.stowplan.dev/decode-parms": '{"alpha": 10, "beta": 0.1}',
                "simulation.stowplan.dev/prefill-parms": '{"gamma": 5, "delta": 0.1}',
            },
        },
        "spec": {
            "containers": [
                {
                    "args": [f"--model={MODEL}", "--num-gpu-blocks-override=100", "--max-num-seqs=8"],
                    "ports": [{"name": "http", "containerPort": port}],
                }
            ]
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture
def traffic() -> Traffic:
    """Return traffic without requests."""
    return Traffic({MODEL: iter(())})


async def scrape(address: str, port: int, path: str = "/metrics") -> tuple[int, str]:
    """Send one request over a new connection and return status and text."""
    async with aiohttp.ClientSession() as client, client.get(f"http://{address}:{port}{path}") as response:
        return response.status, await response.text()


async def test_a_ready_pod_gets_an_engine_at_its_own_address(
    traffic: Traffic, address: str, port: int
) -> None:
    """Its metrics contain the values of the pod's arguments."""
    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        await host.match([pod(address, port)])
        status, text = await scrape(address, port)

    assert status == 200
    assert 'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0' in text
    assert f'vllm:num_requests_running{{engine="0",model_name="{MODEL}"}} 0.0' in text


async def test_two_pods_have_separate_engines(traffic: Traffic) -> None:
    """One application serves both and distinguishes them by the local address."""
    first, second = f"127.31.8.{next(_addresses)}", f"127.31.8.{next(_addresses)}"
    port = free_port(first)
    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        await host.match([pod(first, port, uid="a"), pod(second, port, uid="b")])
        request = Request(request_id=1, arrival_us=0, prompt_tokens=10, output_tokens=10)
        traffic.fleet.routers[MODEL].submit(request, now_us=0)
        texts = [(await scrape(address, port))[1] for address in (first, second)]

    waiting = [f'vllm:num_requests_waiting{{engine="0",model_name="{MODEL}"}} {n}.0' for n in (1, 0)]
    assert [want in text for want, text in zip(waiting, texts, strict=True)] == [True, True]


async def test_the_engine_of_a_deleted_pod_stops_and_its_requests_are_retried(
    traffic: Traffic, address: str, port: int
) -> None:
    """The address does not listen any more, and the request is held until there is another engine."""
    router = traffic.fleet.routers[MODEL]
    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        await host.match([pod(address, port)])
        router.submit(Request(request_id=1, arrival_us=0, prompt_tokens=10, output_tokens=10), now_us=0)
        await host.match([])
        with pytest.raises(aiohttp.ClientConnectorError):
            await scrape(address, port)

    assert [request.request_id for request in router.held] == [1]


async def test_an_open_connection_to_a_deleted_pod_gets_status_503(
    traffic: Traffic, address: str, port: int
) -> None:
    """The response does not come from another engine, and the connection is closed."""
    url = f"http://{address}:{port}/metrics"
    async with EngineHost(traffic.fleet, SimulatedClock()) as host, aiohttp.ClientSession() as client:
        await host.match([pod(address, port)])
        async with client.get(url) as response:
            await response.read()
        await host.match([])
        async with client.get(url) as response:
            assert response.status == 503
            assert response.headers["Connection"] == "close"


async def test_an_address_can_be_reused(traffic: Traffic, address: str, port: int) -> None:
    """A new pod may get the address of a deleted one; its engine is a new one."""
    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        await host.match([pod(address, port, uid="old")])
        await host.match([pod(address, port, uid="new")])
        status, _ = await scrape(address, port, "/health")

    assert status == 200
    assert list(traffic.fleet.routers[MODEL].servers) == ["new"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "False"}]}, id="not ready"),
        pytest.param({"annotations": {}}, id="without annotations"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, id="being deleted"),
    ],
)
async def test_pods_that_should_not_serve_get_no_engine(
    change: dict[str, object], traffic: Traffic, address: str, port: int
) -> None:
    """Only Ready pods with the annotations get an engine, unless they are being deleted."""
    unwanted = pod(address, port)
    part = "status" if "conditions" in change else "metadata"
    unwanted[part] = {**unwanted[part], **change}

    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        await host.match([unwanted])

        assert host.addresses == frozenset()


async def test_a_pod_that_is_being_deleted_gets_no_new_requests(
    traffic: Traffic, address: str, port: int
) -> None:
    """Its engine keeps listening and finishes its requests."""
    leaving = pod(address, port)
    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        await host.match([leaving])
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        await host.match([leaving])
        router = traffic.fleet.routers[MODEL]
        router.submit(Request(request_id=1, arrival_us=0, prompt_tokens=10, output_tokens=10), now_us=0)

        assert host.addresses == frozenset({address})
        assert len(router.held) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--model=a"], "--num-gpu-blocks-override must be given", id="no cache size"),
        pytest.param(["--num-gpu-blocks-override=5"], "must be given once, was given 0", id="no model"),
        pytest.param(
            ["--model=a", "--num-gpu-blocks-override=5", "--max-num-batched-tokens=1"],
            "max_num_batched_tokens must be greater",
            id="contradictory limits",
        ),
    ],
)
async def test_missing_or_invalid_arguments_are_an_error_that_names_the_pod(
    arguments: list[str], message: str, traffic: Traffic, address: str, port: int
) -> None:
    """No values are assumed."""
    unclear = pod(address, port)
    unclear["spec"]["containers"][0]["args"] = arguments

    async with EngineHost(traffic.fleet, SimulatedClock()) as host:
        with pytest.raises(UnreadableProfileError, match=f"pod llama-one: .*{message}"):
            await host.match([unclear])


@pytest.mark.parametrize(("text", "seconds"), [("20s", 20.0), ("0s", 0.0)])
def test_the_start_up_time_is_read_from_the_annotation(text: str, seconds: float) -> None:
    """Kwok's stages read the same format."""
    assert start_up_seconds_of({"metadata": {"annotations": {START_UP_ANNOTATION: text}}}) == seconds


@pytest.mark.parametrize("text", ["20", "2m", "soon", "-1s"])
def test_a_start_up_time_in_another_format_is_rejected(text: str) -> None:
    """Kwok would make such a pod Ready at once or never."""
    with pytest.raises(UnreadableProfileError, match="must be seconds such as 20s"):
        start_up_seconds_of({"metadata": {"annotations": {START_UP_ANNOTATION: text}}})


async def test_an_engine_serves_its_model_and_loaded_adapters(
    traffic: Traffic, address: str, port: int
) -> None:
    """The paths are those of vLLM; unknown models and adapters get status 404."""
    async with EngineHost(traffic.fleet, SimulatedClock()) as host, aiohttp.ClientSession() as client:
        await host.match([pod(address, port)])
        base = f"http://{address}:{port}/v1"

        async def post(path: str, **body: str) -> int:
            async with client.post(f"{base}/{path}", json=body) as response:
                return response.status

        assert await post("completions", model=MODEL, prompt="a b") == 200
        assert await post("completions", model="sql", prompt="a b") == 404
        assert await post("load_lora_adapter", lora_name="sql") == 400
        assert await post("load_lora_adapter", lora_name="sql", lora_path="/weights/sql") == 200
        assert await post("load_lora_adapter", lora_name="sql", lora_path="/weights/sql") == 400
        assert await post("completions", model="sql", prompt="a b") == 200
        async with client.get(f"{base}/models") as response:
            assert [card["id"] for card in (await response.json())["data"]] == [MODEL, "sql"]
        assert await post("unload_lora_adapter", lora_name="sql") == 200
        assert await post("unload_lora_adapter", lora_name="sql") == 404
