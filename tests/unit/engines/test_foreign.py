"""Names of engines whose metrics are not read."""

from __future__ import annotations

import pytest
from aiohttp import web
from support.served import served

from controller.engines.metrics import no_engine
from controller.engines.scraping import ScrapeLimits, Scraper, parse_networks

PAGES = {
    "vLLM in Ray Serve": (
        'ray_node_cpu 4\nray_vllm_num_requests_running{WorkerId="w",engine="0"} 1\n',
        "metrics of vLLM in Ray Serve",
    ),
    "Text Generation Inference": ("tgi_request_count 7\n", "metrics of Text Generation Inference"),
    "Text Embeddings Inference": ("te_request_count 7\n", "metrics of Text Embeddings Inference"),
    "llama.cpp": ("# TYPE x gauge\nllamacpp:requests_processing 1\n", "metrics of llama.cpp"),
    "vLLM without its own metrics": (
        "python_info 1\nhttp_requests_total 7\n",
        "no series of vLLM or SGLang: name the container port of the engine `metrics` or `http`, start vLLM"
        " without --disable-log-stats",
    ),
    "a name within another one": ("my_tgi_count 7\n", "no series of vLLM or SGLang"),
}


@pytest.mark.parametrize(("text", "want"), PAGES.values(), ids=PAGES.keys())
def test_the_engine_of_a_page_is_named(text: str, want: str) -> None:
    """It cannot be read, but the message says what it is."""
    assert no_engine(text).startswith(want)


async def test_a_pod_with_another_engine_is_silent_and_named() -> None:
    """Its own name is in the reason."""

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text="tgi_request_count 7\n")

    limits = ScrapeLimits(
        port_names=("http",),
        pod_networks=parse_networks(["127.0.0.0/8"]),
        timeout_seconds=2,
        limit_bytes=1 << 16,
        concurrency=1,
    )
    async with served(page) as port, Scraper(limits) as scraper:
        container = {"ports": [{"name": "http", "containerPort": port}]}
        pod = {
            "metadata": {"namespace": "ns", "name": "engine"},
            "spec": {"containers": [container]},
            "status": {"podIP": "127.0.0.1"},
        }
        scraped = await scraper.scrape([pod])

    assert "metrics of Text Generation Inference" in scraped.failures["ns", "engine"]
