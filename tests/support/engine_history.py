"""Pages of simulated engines over time, and a real Prometheus that has scraped them in the past."""

from __future__ import annotations

import json
import random
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from controller.simulation.profile import EngineProfile
from controller.simulation.server import Server, exposition
from controller.simulation.workload import Request
from hack.controlplane.binaries import provide_module
from hack.controlplane.modules import PROMETHEUS
from hack.controlplane.network import free_port
from hack.controlplane.process import Probe, Process, wait_until_ready
from hack.controlplane.progress import ProgressLine

LLAMA: Final = "meta-llama/Llama-3.1-8B-Instruct"
PROFILE: Final = EngineProfile(
    model_id=LLAMA, alpha_ms=8, beta_ms=0.05, gamma_ms=0, delta_ms=0.03, num_gpu_blocks=24_000
)
SCRAPE_SECONDS: Final = 15
_READY_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_ADDRESS: Final = "127.0.0.1"


def waves(seconds: float) -> float:
    """Return requests per second that vary between 4 and 16 within five minutes."""
    return 4 + 3 * (seconds // 60 % 5)


def pages(
    count: int,
    *,
    rate: Callable[[float], float] = waves,
    profile: EngineProfile = PROFILE,
    restart_at: int | None = None,
    seed: int = 1,
) -> list[str]:
    """Return the pages of one engine, 15 s apart; it can restart with one of them."""
    server, chance = Server(profile), random.Random(seed)
    made, sent, number = [exposition(server).decode()], 0.0, 0
    for page in range(1, count):
        end = page * SCRAPE_SECONDS
        if page == restart_at:
            server = Server(profile, now_us=round(sent * 1e6))
        while (following := sent + chance.expovariate(rate(sent))) <= end:
            sent, number = following, number + 1
            server.advance(round(sent * 1e6))
            request = Request(
                request_id=number,
                arrival_us=round(sent * 1e6),
                prompt_tokens=chance.randint(100, 2000),
                output_tokens=chance.randint(50, 350),
            )
            server.submit(request, now_us=request.arrival_us)
        sent = float(end)
        server.advance(round(end * 1e6))
        made.append(exposition(server).decode())
    return made


@dataclass(kw_only=True)
class Past:
    """What a Prometheus scraped from pods in the past, as one page whose samples have times."""

    ended_seconds: float = field(default_factory=lambda: float(int(time.time())) - 30)
    lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, pod: str, own: list[str], *, namespace: str = "chat", until_seconds: float = 0.0) -> None:
        """Add the pages of a pod; the last one is `until_seconds` before the end."""
        for place, page in enumerate(reversed(own)):
            at_ms = round((self.ended_seconds - until_seconds - place * SCRAPE_SECONDS) * 1e3)
            for family in text_string_to_metric_families(page):
                for sample in family.samples:
                    labels = {**sample.labels, "namespace": namespace, "pod": pod, "instance": f"{pod}:8000"}
                    text = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items()))
                    series = f"{sample.name}{{{text}}}"
                    self.lines.setdefault(series, []).insert(0, f"{series} {sample.value:.17g} {at_ms}")

    @property
    def page(self) -> bytes:
        """The page."""
        return "".join(f"{line}\n" for lines in self.lines.values() for line in lines).encode()


@contextmanager
def prometheus_with(past: Past, directory: Path) -> Iterator[str]:
    """Run a real Prometheus that has the past; yields its URL. Its program is built if it is missing."""
    bodies = [past.page]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer the first scrape with the past, and others with nothing."""
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(bodies.pop() if bodies else b"")

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer((_ADDRESS, 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    port = free_port(_ADDRESS)
    (directory / "prometheus.yaml").write_text(
        json.dumps(_configuration(server.server_port)), encoding="utf-8"
    )
    program = provide_module(PROMETHEUS, ProgressLine())["prometheus"]
    flags = {
        "config.file": str(directory / "prometheus.yaml"),
        "storage.tsdb.path": str(directory / "data"),
        "web.listen-address": f"{_ADDRESS}:{port}",
    }
    command = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
    process, url = Process("prometheus", command, directory=directory), f"http://{_ADDRESS}:{port}"
    process.start()
    try:
        wait_until_ready(process, Probe(url=f"{url}/-/ready"), patience_seconds=_READY_SECONDS)
        _wait_for_samples(url, past)
        yield url
    finally:
        process.stop()
        server.shutdown()
        server.server_close()


def _configuration(port: int) -> Mapping[str, object]:
    job = {
        "job_name": "engines",
        "honor_labels": True,
        "static_configs": [{"targets": [f"{_ADDRESS}:{port}"]}],
    }
    return {
        "global": {"scrape_interval": "5s", "scrape_timeout": "5s"},
        "storage": {"tsdb": {"out_of_order_time_window": "48h"}},
        "scrape_configs": [job],
    }


def _wait_for_samples(url: str, past: Past) -> None:
    query = {"query": "count({__name__=~'vllm:num_requests_running'})", "time": f"{past.ended_seconds:.0f}"}
    asked = f"{url}/api/v1/query?{urllib.parse.urlencode(query)}"
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        with urllib.request.urlopen(asked, timeout=_READY_SECONDS) as answer:  # noqa: S310 (our own URL)
            if json.load(answer)["data"]["result"]:
                return
        assert time.monotonic() < deadline, "Prometheus has not scraped the page"
        time.sleep(_POLL_SECONDS)
