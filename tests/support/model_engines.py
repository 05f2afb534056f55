"""Engines of Models on simulated nodes: each listens on its pod's address, with a real loader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web

from apiserver.schema.json import Json
from controller.observe.pods import is_ready
from hack.demo.openai_api import LoaderHost, OpenAiApi, ServedModel

PORT = 8000
_PATIENCE_SECONDS = 120.0


class ModelEngines:
    """The engines of one namespace, whose objects of a kind `get` returns. Use as `async with`."""

    def __init__(self, get: Callable[[str], Json], folder: Path, *, model: str) -> None:
        self._get = get
        self._model = model
        self._loaders = LoaderHost(folder)
        self.served: dict[str, ServedModel] = {}
        """Served models and adapters of each engine, by address."""
        application = web.Application()
        OpenAiApi(self._called).add_routes(application.router)
        self._runner = web.AppRunner(application)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        with self._loaders:
            await self._runner.cleanup()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Update engines and loaders with the pods until a condition holds."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                found = [await asyncio.to_thread(self._get, kind) for kind in ("pod", "configmap")]
                await self._match(*(each["items"] for each in found))
                if await asyncio.to_thread(is_so):
                    return
                await asyncio.sleep(0.2)

    def have(self, *names: str) -> bool:
        """Tell whether there are engines, all of them with exactly these adapters."""
        return bool(self.served) and all(set(item.adapters) == set(names) for item in self.served.values())

    async def complete(self, model: str) -> list[int]:
        """Request a completion from every engine; return the status codes."""
        codes = []
        async with aiohttp.ClientSession() as session:
            for address in self.served:
                url = f"http://{address}:{PORT}/v1/completions"
                async with session.post(url, json={"model": model, "prompt": "what is"}) as response:
                    codes.append(response.status)
        return codes

    async def _match(self, pods: list[Json], maps: list[Json]) -> None:
        for address in {pod["status"]["podIP"] for pod in pods if is_ready(pod)} - self.served.keys():
            self.served[address] = ServedModel(self._model)
            await web.TCPSite(self._runner, address, PORT).start()
        self._loaders.match(pods, {item["metadata"]["name"]: item for item in maps})

    def _called(self, request: web.Request) -> ServedModel:
        assert request.transport is not None
        return self.served[request.transport.get_extra_info("sockname")[0]]
