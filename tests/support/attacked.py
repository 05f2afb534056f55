"""The webhooks process as shipped, attacked on a loopback port while a client reads."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import yaml

from hack.calling.conversion_reviews import SERVER_NAME
from hack.calling.cores import memory_mebibytes
from hack.calling.reviews import create
from hack.calling.server_process import ADDRESS, ServerProcess, new_identity, run_server
from hack.controlplane.network import free_port
from support.reviews import variant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from apiserver.schema.json import Json

ROOT: Final = Path(__file__).resolve().parents[2]
READS_AT_LEAST: Final = 20
_VERSIONS: Final = ("v1alpha1", "v1alpha2")


def kubeconfig_for(directory: Path, port: int) -> Path:
    """Write a kubeconfig for an API server on a loopback port."""
    path = directory / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "there",
        "clusters": [{"name": "there", "cluster": {"server": f"http://{ADDRESS}:{port}"}}],
        "users": [{"name": "us", "user": {"token": "t"}}],
        "contexts": [{"name": "there", "context": {"cluster": "there", "user": "us"}}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@contextmanager
def webhooks(directory: Path, kubeconfig: Path) -> Iterator[ServerProcess]:
    """Run the webhooks process with a kubeconfig until the block ends; it listens when the block begins."""
    context = new_identity(directory, server_name=SERVER_NAME)
    port = free_port(ADDRESS)
    section = {"bindAddress": ADDRESS, "port": port, "metricsPort": 0, "healthPort": 0, "drainSeconds": 0}
    document = {
        "serving": section | {"certificateDirectory": str(directory)},
        "cluster": {"kubeconfig": str(kubeconfig)},
    }
    configuration = directory / "webhooks.yaml"
    configuration.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [sys.executable, "-m", "apiserver.cli", "webhooks", "--config", str(configuration)]
    with run_server(
        command, name="webhooks", directory=directory, port=port, context=context, server_name=SERVER_NAME
    ) as server:
        yield server


@dataclass(slots=True)
class Attacked:
    """The process under attack, and the results of a client that reads from it."""

    server: ServerProcess
    session: aiohttp.ClientSession
    results: list[Json] = field(default_factory=list)
    slowest_seconds: float = 0.0

    def url(self, path: str) -> str:
        """Return a URL of the process."""
        return f"https://{ADDRESS}:{self.server.port}{path}"

    def peak_mebibytes(self) -> float:
        """Return the peak memory in MiB so far. Raises OSError if the process has ended."""
        return memory_mebibytes("VmHWM", self.server.pid)

    async def load(self) -> None:
        """Send an admission review, so that the process has loaded everything."""
        review = create(variant(version="v1alpha2"))
        async with self.session.post(
            self.url("/validate"), data=review, server_hostname=SERVER_NAME
        ) as answer:
            assert answer.status == HTTPStatus.OK

    async def read(self) -> None:
        """Convert an object as a read of either version does, half of the times on a new connection."""
        number = len(self.results)
        wanted = f"llmd.ai/{_VERSIONS[number % 2]}"
        request = {"uid": "u", "desiredAPIVersion": wanted, "objects": [variant(version="v1alpha1")]}
        body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
        headers = {"Connection": "close"} if number // 2 % 2 else {}
        began = time.monotonic()
        async with self.session.post(
            self.url("/convert"), json=body, headers=headers, server_hostname=SERVER_NAME
        ) as answer:
            found: dict[str, Any] = await answer.json()
        self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
        self.results.append(found["response"]["result"])

    async def keep_reading(self, enough: asyncio.Event) -> None:
        """Read until the event is set, but at least 20 times."""
        while not (enough.is_set() and len(self.results) >= READS_AT_LEAST):
            await self.read()
            await asyncio.sleep(0)


@asynccontextmanager
async def attacked(directory: Path, *, patience_seconds: float) -> AsyncIterator[Attacked]:
    """Run the process and read from it during the block; afterwards, check that no read failed.

    Also check that the process stays within 90 % of its memory limit in the manifests, and did not restart.
    """
    with webhooks(directory, kubeconfig_for(directory, free_port(ADDRESS))) as server:
        # Before 3.12.7, asyncio may never close a TLS connection that the server has reset (issue 118950).
        is_leaky = sys.version_info < (3, 12, 7)
        connector = aiohttp.TCPConnector(ssl=server.context, limit=0, enable_cleanup_closed=is_leaky)
        timeout = aiohttp.ClientTimeout(total=patience_seconds)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            found, enough = Attacked(server, session), asyncio.Event()
            await found.load()
            async with asyncio.TaskGroup() as group:
                group.create_task(found.keep_reading(enough))
                yield found
                enough.set()
        peak = found.peak_mebibytes()
        assert all(result == {"status": "Success"} for result in found.results)
        assert peak <= 0.9 * _limit_mebibytes(), f"{peak:.0f} MiB"


def _limit_mebibytes() -> int:
    manifests = yaml.safe_load_all(
        (ROOT / "manifests" / "base" / "deployments.yaml").read_text(encoding="utf-8")
    )
    (found,) = (item for item in manifests if item["metadata"]["name"] == "stowplan-webhooks")
    limit = found["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    return int(limit.removesuffix("Mi"))
