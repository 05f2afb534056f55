"""The loader container beside an engine: it downloads, loads and unloads adapters, and reports failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.models import loading_backend, model, one

from apiserver.schema.json import Json
from controller.expansion.adapter_loader import MOST_FETCHES
from controller.expansion.expansion import expand
from hack.demo.openai_api import LoaderHost, OpenAiApi, ServedModel

ADDRESS = "127.31.9.1"
PATIENCE_SECONDS = 60.0


class Pod:
    """A pod with a simulated engine and the real loader."""

    def __init__(self, host: LoaderHost) -> None:
        self.served = ServedModel("qwen", broken=frozenset({"broken"}))
        self._host = host
        self._pod: Json = {}

    def ask_for(self, *names: str) -> None:
        """Write a list of adapters to the pod, as the kubelet does."""
        objects = expand(model(loading_backend(*names))).objects if names else ()
        if not self._pod:
            template = one(objects, "Deployment")["spec"]["template"]
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            self._pod = {"metadata": {"uid": "p"}, "spec": template["spec"]}
            self._pod["status"] = {"podIP": ADDRESS, **ready}
        lists = {"qwen-l4": one(objects, "ConfigMap")} if names else {}
        self._host.match([self._pod], lists)

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[None]:
        """Run the engine."""
        application = web.Application()
        OpenAiApi(lambda _: self.served).add_routes(application.router)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, ADDRESS, 8000).start()
        try:
            yield
        finally:
            await runner.cleanup()

    async def page(self, path: str = "/") -> tuple[int, Json]:
        """Return the status code and the page of the loader; the code is 0 before it listens."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://{ADDRESS}:8100{path}") as response,
            ):
                return response.status, await response.json(content_type=None)
        except aiohttp.ClientConnectorError:
            return 0, {}

    async def wait(self, is_so: Callable[[int, Json], bool], path: str = "/") -> Json:
        """Wait until a page of the loader fulfills a condition."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so(*(found := await self.page(path))):  # noqa: ASYNC110 (a page emits no event)
                await asyncio.sleep(0.1)
        return found[1]


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """Return an empty pod."""
    with LoaderHost(tmp_path / "pods") as host:
        yield Pod(host)


def is_ready(code: int, _: Json) -> bool:
    """Tell whether the pod is ready for requests."""
    return code == 200


async def test_loaded_adapters_follow_the_list_without_a_restart_of_the_pod(pod: Pod) -> None:
    """The first list is loaded before the pod is ready; adapters are loaded again after an engine restart."""
    pod.ask_for("a", "b")
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


async def test_the_download_of_an_adapter_that_is_no_longer_listed_is_stopped(pod: Pod) -> None:
    """Otherwise hanging downloads, whose number is limited, would block all other adapters forever."""
    hanging = [f"{number}-hanging" for number in range(MOST_FETCHES)]
    pod.ask_for(*hanging, "a")
    async with pod.engine():
        await pod.wait(lambda code, _: code == 503, "/ready")
        pod.ask_for("a")
        await pod.wait(lambda _, page: set(page["loaded"]) == {"a"})
        assert (await pod.page())[1]["failed"] == {}


ANSWERS = {
    "response cut off": (b"Content-Length: 1000\r\n\r\n{", "does not report its adapters: IncompleteRead"),
    "no JSON": (b"Content-Length: 1\r\n\r\n{", "cannot be read: JSONDecodeError"),
    "a list": (b"Content-Length: 2\r\n\r\n[]", "cannot be read: TypeError"),
}


@pytest.mark.parametrize(("answer", "said"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_an_unreadable_response_of_the_engine_is_logged(
    pod: Pod, tmp_path: Path, answer: bytes, said: str
) -> None:
    """The log names the actual error and not the list; the loader continues with the next response."""

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + answer)
        writer.close()

    log = tmp_path / "pods" / "p" / "log"
    async with await asyncio.start_server(tell, ADDRESS, 8000):
        pod.ask_for("a")
        await pod.wait(lambda *_: said in log.read_text(encoding="utf-8"))
    async with pod.engine():
        await pod.wait(is_ready, "/ready")
    assert "list of adapters" not in log.read_text(encoding="utf-8")


async def test_failed_adapters_are_reported_and_do_not_block_others(pod: Pod) -> None:
    """The engine serves with the others; an adapter that another client loaded is kept."""
    pod.served.adapters["own"] = "elsewhere/own"
    pod.ask_for("a", "missing", "broken")
    async with pod.engine():
        await pod.wait(is_ready, "/ready")

        page = await pod.wait(lambda _, page: "a" in page["loaded"])
        assert page["failed"]["missing"] == (
            "the download ended with code 1: 404 Client Error: Repository not found"
        )
        assert "the engine failed to load it: HTTP 400" in page["failed"]["broken"]
        assert "broken has a wrong rank" in page["failed"]["broken"]

        pod.ask_for()
        await pod.wait(lambda _, page: page == {"loaded": {}, "failed": {}})
        assert set(pod.served.adapters) == {"own"}


def test_loaders_that_are_still_starting_are_ended_without_an_error(tmp_path: Path) -> None:
    """A pod can be deleted at any time."""
    for number in range(3):
        with LoaderHost(tmp_path / str(number)) as host:
            Pod(host).ask_for("a")
