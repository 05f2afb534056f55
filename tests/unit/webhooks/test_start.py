"""The start of `stowplan webhooks`: conversion is served before admission is ready."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from support.posting import client_of
from support.reviews import ANYBODY, review, variant

from apiserver.schema.json import Json
from apiserver.serving.authority import new_authority, new_leaf
from webhooks.app import application
from webhooks.judging import judges_of
from webhooks.referents import Referents
from webhooks.review import Judges

PATIENCE_SECONDS = 60
MEGABYTE = 1 << 20
LATER = {
    "rich",
    "jsonschema",
    "importlib.metadata",
    "kubernetes_asyncio",
    "cryptography",
    "ortools",
    "numpy",
    "apiserver.kinds.registry",
    "apiserver.cluster",
    "webhooks.decision",
    "webhooks.judging",
}
"""Modules that take long to import and that conversion does not need."""

NEEDED = {"aiohttp.web_app", "uvloop", "yaml", "webhooks.app"}
CONVERSION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "ConversionReview",
    "request": {
        "uid": "u",
        "desiredAPIVersion": "llmd.ai/v1alpha2",
        "objects": [variant(version="v1alpha1")],
    },
}


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the program with a configuration file, as in every installation; it prints its imports."""
    file = folder / "webhooks.yaml"
    ports = dict.fromkeys(("port", "metricsPort", "healthPort"), 0)
    serving = ports | {"certificateDirectory": str(folder), "drainSeconds": 0, "logFormat": "json"}
    file.write_text(json.dumps({"serving": serving | {"bindAddress": "127.0.0.1"}}), encoding="utf-8")
    command = [sys.executable, "-X", "importtime", "-m", "apiserver.cli", "webhooks", f"--config={file}"]
    process = await asyncio.create_subprocess_exec(
        *command, env={"HOME": str(folder)}, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def until_serving(process: asyncio.subprocess.Process) -> tuple[set[str], dict[str, int]]:
    """Return the modules imported when the process begins to serve, and its ports."""
    assert process.stderr is not None
    imported: set[str] = set()
    while line := (await process.stderr.readline()).decode():
        if '"event":"serving"' in line:
            return imported, {name: int(port) for name, port in re.findall(r"(\w+) (\d+)", line)}
        if line.startswith("import time:"):
            imported.add(line.rpartition("|")[2].strip())
    raise AssertionError("it has ended before it served")


async def converted(port: int, context: ssl.SSLContext) -> Json:
    """Return the response of the process to a conversion review."""
    url = f"https://127.0.0.1:{port}/convert"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=CONVERSION, ssl=context, server_hostname="localhost") as response,
    ):
        answer: Json = await response.json()
        return answer


def certified(folder: Path) -> ssl.SSLContext:
    """Write a certificate, and return a TLS context that trusts it."""
    now = datetime.now(UTC)
    authority = new_authority("test", lifetime=timedelta(days=2), now=now)
    leaf = new_leaf(authority, ("localhost",), lifetime=timedelta(days=1), now=now)
    (folder / "tls.crt").write_bytes(leaf.certificate)
    (folder / "tls.key").write_bytes(leaf.key)
    return ssl.create_default_context(cadata=authority.certificate.decode())


async def test_conversion_is_served_before_admission_is_loaded(tmp_path: Path) -> None:
    """By then, nothing is imported that only admission or the command line needs."""
    context = certified(tmp_path)
    async with started(tmp_path) as process:
        imported, ports = await until_serving(process)
        answer = await converted(ports["https"], context)
        process.terminate()
        await process.communicate()

    assert imported >= NEEDED
    assert imported & LATER == set()
    assert answer["response"]["result"] == {"status": "Success"}
    assert process.returncode == 0


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_reviews_wait_for_admission_to_be_ready_and_conversion_does_not(path: str) -> None:
    """A review that arrives early is answered as soon as the decision functions are ready."""
    there = asyncio.Event()

    async def judges() -> Judges:
        await there.wait()
        return judges_of(ANYBODY, Referents(""))

    app = application(judges, admission_limit_bytes=MEGABYTE, conversion_limit_bytes=MEGABYTE)
    async with asyncio.timeout(PATIENCE_SECONDS), client_of(app) as client:
        waiting = asyncio.create_task(
            client.post(path, json={"kind": "AdmissionReview", "request": review(variant())})
        )
        conversion = await (await client.post("/convert", json=CONVERSION)).json()
        was_waiting = not waiting.done()
        there.set()
        answered = await (await waiting).json()

    assert conversion["response"]["result"] == {"status": "Success"}
    assert was_waiting
    assert answered["response"]["allowed"] is True
