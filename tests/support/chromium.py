"""Headless Chromium, driven by its DevTools protocol over a WebSocket: the Debian package `chromium`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest

CHROMIUM: Final = "chromium"
_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_SECONDS: Final = 30.0


class Page:
    """One page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        """Entries of the console and of the log that are errors, such as violations of the page's policy."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a command of the protocol; events that arrive before are read."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._receive()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    async def open(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        await self.call("Page.navigate", url=url)
        await self._loaded()

    async def submit(self, script: str) -> None:
        """Run a script that leads to another page, and wait until that is loaded."""
        await self.call("Runtime.evaluate", expression=script)
        await self._loaded()

    async def text(self, expression: str = "document.body.innerText") -> str:
        """Return the value of a JavaScript expression as text; by default what a reader sees."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return str(answer["result"].get("value"))

    async def show(self, *, width: int, height: int = 800, scheme: str = "light") -> None:
        """Show the page as on a screen of a width, in a colour scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def _loaded(self) -> None:
        while (await self._receive()).get("method") != "Page.loadEventFired":
            pass

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._socket.receive_json(timeout=_SECONDS)
        entry = message.get("params", {}).get("entry", {})
        if message.get("method") == "Log.entryAdded" and entry.get("level") == "error":
            self.problems.append(str(entry.get("text")))
        return message


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Start a browser with one page; skip the test without Chromium."""
    program = shutil.which(CHROMIUM)
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as directory:
        flags = [*_FLAGS, f"--user-data-dir={directory}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        process = await asyncio.create_subprocess_exec(
            program,
            *flags,
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            port = await _port(process.stderr)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    targets = json.loads(await answer.text())
                address = next(item["webSocketDebuggerUrl"] for item in targets if item["type"] == "page")
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Page", "Runtime", "Log"):
                        await page.call(f"{domain}.enable")
                    yield page
        finally:
            process.terminate()
            await process.wait()


async def _port(output: asyncio.StreamReader | None) -> int:
    """Return the port that the browser prints once it listens."""
    assert output is not None
    async with asyncio.timeout(_SECONDS):
        while line := (await output.readline()).decode():
            if match := re.match(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
                return int(match[1])
    pytest.fail("the browser ended")
