"""Server processes: start, responses, draining and exit."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from unit.serving.conftest import CertificateFiles, ServerProcess

HOST = "stowplan-test.ns.svc"
_WARM = 200


@pytest.fixture
async def client(files: CertificateFiles) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a client that trusts the server and keeps connections alive."""
    connector = aiohttp.TCPConnector(ssl=files.client_context())
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


class Caller:
    """A client of one server until it refuses connections, then of another; records lost requests."""

    def __init__(self, client: aiohttp.ClientSession, servers: list[ServerProcess]) -> None:
        """Start with the first server."""
        self.client = client
        self.servers = servers
        self.answers = self.asked_to_leave = 0
        self.lost: list[str] = []
        self.warmed_up, self.moved = asyncio.Event(), asyncio.Event()

    async def call(self) -> None:
        """Send one request to the current server."""
        url = self.servers[1 if self.moved.is_set() else 0].url("/echo")
        try:
            async with self.client.post(url, data=b"x" * 2000, server_hostname=HOST) as response:
                assert await response.read() == b"x" * 2000
                self.answers += 1
                if self.answers == _WARM:
                    self.warmed_up.set()
                self.asked_to_leave += response.headers.get("Connection") == "close"
        except aiohttp.ClientConnectorError:
            self.moved.set()  # connection refused: nothing was sent
        except aiohttp.ClientError as error:
            self.lost.append(repr(error))

    async def call_until(self, done: asyncio.Event) -> None:
        """Repeat calls until the event is set."""
        while not done.is_set():
            await self.call()


async def test_no_request_is_lost_when_a_process_is_replaced(
    start: Callable[..., Any], client: aiohttp.ClientSession
) -> None:
    """Clients with kept-alive connections get responses from the terminated process or its successor."""
    async with start(drain_seconds=1) as old, start() as new:
        caller = Caller(client, [old, new])
        done = asyncio.Event()
        tasks = [asyncio.create_task(caller.call_until(done)) for _ in range(8)]
        await caller.warmed_up.wait()
        old.terminate()
        assert await old.exit_code() == 0
        await caller.moved.wait()
        done.set()
        await asyncio.gather(*tasks)

        assert caller.lost == []
        assert caller.asked_to_leave > 0


async def test_a_draining_process_serves_requests_but_is_not_ready(
    start: Callable[..., Any], client: aiohttp.ClientSession
) -> None:
    """New connections are served with `Connection: close`; a second signal ends the drain period."""
    async with start(drain_seconds=30) as server:
        async with client.get(server.url("/readyz", "health")) as response:
            assert (response.status, await response.text()) == (200, "ok")
        server.terminate()
        while (await server.line())["event"] != "shutting down":
            pass
        async with client.get(server.url("/readyz", "health")) as response:
            assert response.status == 503
            assert "[-]shutdown failed: the process is shutting down" in await response.text()
        async with client.post(server.url("/echo"), data=b"x", server_hostname=HOST) as response:
            assert (response.status, response.headers["Connection"]) == (200, "close")
        async with client.get(server.url("/nowhere"), server_hostname=HOST) as response:
            assert (response.status, response.headers["Connection"]) == (404, "close")
        async with client.get(server.url("/livez", "health")) as response:
            assert response.status == 200
        server.terminate()

        assert await server.exit_code() == 0, "a second signal cuts the drain short"


async def test_a_request_in_flight_is_finished(
    start: Callable[..., Any], client: aiohttp.ClientSession
) -> None:
    """Its response is sent although the listener has been closed."""
    async with start() as server:
        slow = asyncio.create_task(self_contained(client, server.url("/echo?seconds=1")))
        while await in_progress(client, server) < 1:
            pass
        server.terminate()

        assert await slow == (200, b"slow")
        assert await server.exit_code() == 0


async def self_contained(client: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    """Send a request; return status and body of the response."""
    async with client.post(url, data=b"slow", server_hostname=HOST) as response:
        return response.status, await response.read()


async def in_progress(client: aiohttp.ClientSession, server: ServerProcess) -> float:
    """Return the number of requests in progress, from the metrics."""
    async with client.get(server.url("/metrics", "metrics")) as response:
        text = await response.text()
    (line,) = [line for line in text.splitlines() if line.startswith("stowplan_http_requests_in_progress ")]
    return float(line.split()[1])


@pytest.mark.parametrize("how", ["raise", "return"])
async def test_the_end_of_background_work_ends_the_process(start: Callable[..., Any], how: str) -> None:
    """The process logs the reason and exits with code 1."""
    async with start(job=how, plain=True) as server:
        code = await server.exit_code()
    (line,) = [line for line in server.log if line["level"] == "critical"]

    assert code == 1
    assert line["event"] == "background work ended"
    assert ("broken\nin two lines" in line.get("exception", "")) == (how == "raise")


async def test_a_process_without_an_application_serves_only_health_and_metrics(
    start: Callable[..., Any], client: aiohttp.ClientSession
) -> None:
    """It is ready at once, and it ends without a drain period."""
    async with start(plain=True, drain_seconds=60) as server:
        assert set(server.ports) == {"metrics", "health"}
        async with client.get(server.url("/readyz?verbose", "health")) as response:
            assert response.status == 200
        async with client.get(server.url("/metrics", "metrics")) as response:
            assert 'stowplan_build_info{component="echo"' in await response.text()
        server.terminate()
        assert await server.exit_code() == 0


async def test_a_port_in_use_is_a_startup_error(start: Callable[..., Any]) -> None:
    """The process logs one line."""
    async with start() as first:
        with pytest.raises(AssertionError, match=r"cannot listen.*Address already in use"):
            async with start(port=first.ports["https"]):
                pass


async def test_an_internal_error_gives_a_500_without_details_and_one_log_line(
    start: Callable[..., Any], client: aiohttp.ClientSession
) -> None:
    """Only the log contains details, and the text of the error cannot forge a log line."""
    async with start() as server:
        async with client.get(server.url("/fail/x"), server_hostname=HOST) as response:
            assert (response.status, await response.text()) == (500, "internal error: see the server's log\n")
        line = await server.line()

    assert (line["event"], line["path"]) == ("request failed", "/fail/x")
    assert 'secret\n{"level":"info","event":"forged"}' in line["exception"]


async def test_label_values_of_request_metrics_are_limited(
    start: Callable[..., Any], client: aiohttp.ClientSession
) -> None:
    """Unknown paths and methods do not become label values."""
    async with start() as server:
        for path in ("/fail/a", "/fail/b", "/invented"):
            async with client.get(server.url(path), server_hostname=HOST) as response:
                await response.read()
        async with client.request("PROPFIND", server.url("/echo"), server_hostname=HOST) as response:
            await response.read()
        async with client.get(server.url("/metrics", "metrics")) as response:
            lines = (await response.text()).splitlines()
    counts = {line for line in lines if line.startswith("stowplan_http_requests_total")}

    assert counts == {
        'stowplan_http_requests_total{code="500",method="GET",route="/fail/{name}"} 2.0',
        'stowplan_http_requests_total{code="404",method="GET",route="unmatched"} 1.0',
        'stowplan_http_requests_total{code="405",method="other",route="unmatched"} 1.0',
    }


async def test_certificate_files_that_are_created_later_are_used_without_a_restart(
    start: Callable[..., Any], client: aiohttp.ClientSession, files: CertificateFiles
) -> None:
    """Until then the process runs but is not ready; it checks about every second."""
    key = files.key.read_bytes()
    files.key.unlink()
    async with start() as server:
        async with client.get(server.url("/readyz", "health")) as response:
            assert response.status == 503
            assert "[-]certificate failed" in await response.text()
        with pytest.raises(aiohttp.ClientConnectorError):
            await self_contained(client, server.url("/echo"))
        files.key.write_bytes(key)
        while (await server.line())["event"] != "certificate in service":
            pass
        assert await self_contained(client, server.url("/echo")) == (200, b"slow")


def test_a_serving_process_does_not_import_heavy_libraries() -> None:
    """Among these are the Kubernetes client, the certificate library and the solver."""
    heavy = ["kubernetes_asyncio", "cryptography", "ortools", "numpy", "jsonschema"]
    program = (
        "import sys, apiserver.serving.process, apiserver.log\n"
        f"sys.exit(', '.join(name for name in {heavy} if name in sys.modules) or None)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
