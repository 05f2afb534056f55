"""The program beside an engine: adapters are fetched, loaded and unloaded, and failures are told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.models import loading_backend, model, one

from apiserver.schema.json import Json
from controller.models.adapters import LOADER, listed
from controller.models.expansion import expand
from hack.controlplane.network import free_port
from hack.demo.openai_api import OpenAiApi, Served

HF = """#!/bin/sh
case $2 in
*/missing) echo "Fetching 4 files"; echo "404 Client Error: Repository not found" >&2; exit 1 ;;
*) touch "$4/adapter_config.json" ;;
esac
"""
PATIENCE_SECONDS = 60.0


class Pod:
    """One pod: an engine that is simulated, and the real loader with folders and addresses of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.served = Served("qwen", broken=frozenset({"broken"}))
        self._engine_port, self._port = free_port("127.0.0.1"), free_port("127.0.0.1")
        self._list = folder / "adapters.json"
        programs = folder / "bin"
        programs.mkdir()
        (programs / "hf").write_text(HF, encoding="utf-8")
        (programs / "hf").chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def ask_for(self, *names: str) -> Json:
        """Write the list of adapters as the kubelet does; returns the Deployment that belongs to it."""
        objects = expand(model(loading_backend(*names))).objects if names else ()
        entries = listed(one(objects, "ConfigMap")) if names else {}
        for entry in entries.values():
            entry["path"] = entry["path"].replace("/weights", str(self.folder / "weights"))
        fresh = self._list.with_suffix(".new")
        fresh.write_text(json.dumps(entries), encoding="utf-8")
        fresh.rename(self._list)
        return one(objects, "Deployment") if names else {}

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[None]:
        """Run the engine."""
        application = web.Application()
        OpenAiApi(lambda _: self.served).add_routes(application.router)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._engine_port).start()
        try:
            yield
        finally:
            await runner.cleanup()

    @asynccontextmanager
    async def loader(self, deployment: Json) -> AsyncIterator[None]:
        """Run the loader of a Deployment."""
        containers = deployment["spec"]["template"]["spec"]["containers"]
        words = next(item["command"] for item in containers if item["name"] == LOADER)
        options = json.loads(words[-1]) | {
            "host": "127.0.0.1",
            "port": self._port,
            "engine": f"http://127.0.0.1:{self._engine_port}",
            "list": str(self._list),
            "cache": f"{self.folder}/",
            "folders": [f"{self.folder}/"],
        }
        command = [sys.executable, *words[1:-1], json.dumps(options)]
        process = await asyncio.create_subprocess_exec(*command, env=self._environment)
        try:
            yield
        finally:
            process.terminate()
            assert await process.wait() == 0, "it stops at once when it is told to"

    async def page(self, path: str = "/") -> tuple[int, Json]:
        """Return the code and the page of the loader; 0 where nobody answers yet."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self._port}{path}") as response,
            ):
                return response.status, await response.json(content_type=None)
        except aiohttp.ClientConnectorError:
            return 0, {}

    async def wait(self, is_so: Callable[[int, Json], bool], path: str = "/") -> Json:
        """Wait until a page of the loader is as it should be."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so(*(found := await self.page(path))):  # noqa: ASYNC110 - a page is no event
                await asyncio.sleep(0.1)
        return found[1]


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """Return a pod with nothing in it."""
    return Pod(tmp_path)


def is_ready(code: int, _: Json) -> bool:
    """Tell whether the pod may get requests."""
    return code == 200


async def test_adapters_follow_the_list_without_a_restart(pod: Pod) -> None:
    """Before the pod is ready at first, later while it is; and again where the engine was restarted."""
    deployment = pod.ask_for("a", "b")
    async with pod.loader(deployment):
        assert (await pod.wait(lambda code, _: code != 0, "/ready")) == {"loaded": {}, "failed": {}}
        async with pod.engine():
            await pod.wait(is_ready, "/ready")
            assert set(pod.served.adapters) == {"a", "b"}

            pod.ask_for("b", "c")
            await pod.wait(lambda _, page: set(page["loaded"]) == {"b", "c"})
            assert set(pod.served.adapters) == {"b", "c"}

            pod.served.adapters.clear()
            await pod.wait(lambda _, __: set(pod.served.adapters) == {"b", "c"})
        await pod.wait(lambda code, _: code == 503, "/ready")


async def test_what_fails_is_told_and_keeps_nothing_else(pod: Pod) -> None:
    """The engine serves with what it has; what somebody else loaded is left alone."""
    pod.served.adapters["own"] = "elsewhere/own"
    deployment = pod.ask_for("a", "missing", "broken")
    async with pod.engine(), pod.loader(deployment):
        await pod.wait(is_ready, "/ready")

        page = await pod.wait(lambda _, page: "a" in page["loaded"])
        assert page["failed"]["missing"] == (
            "fetching ended with code 1: 404 Client Error: Repository not found"
        )
        assert "the engine does not load it: HTTP 400" in page["failed"]["broken"]
        assert "broken has a wrong rank" in page["failed"]["broken"]

        pod.ask_for()
        await pod.wait(lambda _, page: page == {"loaded": {}, "failed": {}})
        assert set(pod.served.adapters) == {"own"}
