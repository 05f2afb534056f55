"""Malformed requests to all endpoints: no server error, no hang, and a response with the uid, if any."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import aiohttp
import pytest
from differential import garbage
from support.campaign import often
from support.posting import Client, client_of

from apiserver.kinds.scalable import SCALABLE
from apiserver.schema.json import JsonValue
from apiserver.serving.authority import new_authority, new_leaf
from webhooks.app import application
from webhooks.judging import judges_of
from webhooks.referents import Referents
from webhooks.review import SMALL_BYTES, Judges
from webhooks.scaling import ScalingAdmission

ENDPOINTS = ("/mutate", "/validate", "/convert")
ANSWERED, REFUSED, TOO_LARGE = 200, 400, 413
PATIENCE_SECONDS = 60
MANY, SOME = often(150), 100


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Serve the webhooks in this process, without permission checks and without a cluster."""
    scaling = ScalingAdmission(resources=SCALABLE, authorizer=None)

    async def judges() -> Judges:
        return judges_of(scaling, Referents(""))

    app = application(judges, admission_limit_bytes=8 << 20, conversion_limit_bytes=16 << 20)
    async with client_of(app) as started:
        yield started


async def asked(client: Client, path: str, body: bytes, **headers: str) -> tuple[int, JsonValue]:
    """Return the status code and the answer, which arrives in time and is JSON unless HTTP itself rejects."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        response = await client.post(
            path, data=io.BytesIO(body), headers={"Content-Type": "application/json"} | headers
        )
        text = await response.read()
    is_json = response.content_type == "application/json"
    return response.status, json.loads(text) if is_json else text


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("body", garbage.UNANSWERABLE.values(), ids=garbage.UNANSWERABLE.keys())
async def test_a_body_that_is_not_a_review_gets_status_400(client: Client, path: str, body: bytes) -> None:
    """It has no uid to respond to, so the answer is a short message."""
    status, answer = await asked(client, path, body)

    assert status == REFUSED
    assert answer["message"]
    assert len(json.dumps(answer)) < 1000


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("body", garbage.ANSWERABLE.values(), ids=garbage.ANSWERABLE.keys())
async def test_a_request_with_a_uid_gets_a_response(client: Client, path: str, body: bytes) -> None:
    """The response repeats the uid; a rejection has a code, and a limited size."""
    status, answer = await asked(client, path, body)

    assert status == ANSWERED
    assert answer["response"]["uid"] == garbage.UID
    if not answer["response"]["allowed"]:
        assert answer["response"]["status"]["code"] in {400, 422}
        assert len(json.dumps(answer)) < 100_000


async def test_a_compressed_body_is_rejected(client: Client) -> None:
    """It is never decompressed, whatever it contains."""
    status, answer = await asked(client, "/mutate", garbage.COMPRESSED, **{"Content-Encoding": "gzip"})

    assert status == REFUSED
    assert "compressed" in answer["message"]


async def test_a_body_beyond_the_size_limit_gets_status_413(client: Client) -> None:
    """The body here is larger than the limits of all endpoints."""
    status, _ = await asked(client, "/mutate", bytes(17 << 20))

    assert status == TOO_LARGE


@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml", "nonsense", ""])
async def test_the_content_type_does_not_matter(client: Client, content_type: str) -> None:
    """A valid review gets a response with any content type."""
    status, answer = await asked(client, "/mutate", garbage.review_of(1), **{"Content-Type": content_type})

    assert status == ANSWERED
    assert answer["response"]["uid"] == f"{garbage.UID}-1"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
async def test_methods_other_than_post_get_status_405(client: Client, method: str) -> None:
    """Reviews are sent by POST only."""
    response = await client.request(method, "/mutate")

    assert response.status == 405


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_corrupted_reviews_get_a_response_or_are_rejected(client: Client, path: str) -> None:
    """Bytes of valid reviews are flipped, cut, repeated or replaced; a readable uid must get a response."""
    for number in range(MANY):
        status, answer = await asked(client, path, body_of(path, number))
        assert_answered(path, number, status, answer)


async def test_the_webhooks_process_answers_malformed_requests_over_tls(tmp_path: Path) -> None:
    """The process is started as in a cluster, and still runs after all requests.

    Small requests are sent at once: each that names a target waits 2 s for an API server that does not exist.
    Large ones are sent in turn: those that find no room would be asked to retry.
    """

    async def answer_to(path: str, body: bytes) -> tuple[int, JsonValue]:
        async with asyncio.timeout(PATIENCE_SECONDS), session.post(path, data=io.BytesIO(body)) as response:
            return response.status, json.loads(await response.read())

    paths = [ENDPOINTS[number % 3] for number in range(SOME)]
    fixed = (*garbage.UNANSWERABLE.values(), *garbage.ANSWERABLE.values())
    async with webhooks_process(tmp_path) as (url, context):
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(url, connector=connector) as session:
            drawn = asyncio.gather(*(answer_to(path, body_of(path, n)) for n, path in enumerate(paths)))
            for number, answered in enumerate(await drawn):
                assert_answered(paths[number], number, *answered)
            small = [answer_to("/mutate", body) for body in fixed if len(body) <= SMALL_BYTES]
            large = [answer_to("/mutate", body) for body in fixed if len(body) > SMALL_BYTES]
            for status, _ in (*await asyncio.gather(*small), *[await answer for answer in large]):
                assert status in {ANSWERED, REFUSED}


def body_of(path: str, number: int) -> bytes:
    """Return the corrupted review with this number."""
    whole = garbage.conversion_of(number) if path == "/convert" else garbage.review_of(number)
    return garbage.broken(whole, Random(number))


def assert_answered(path: str, number: int, status: int, answer: JsonValue) -> None:
    """Check an answer against the uid that a strict JSON parser finds in the body."""
    body = body_of(path, number)
    uid = uid_of(body, "ConversionReview" if path == "/convert" else "AdmissionReview")
    assert status in {ANSWERED, REFUSED}, (number, body)
    if status == ANSWERED:
        assert uid is None or answer["response"]["uid"] == uid, (number, body)
    else:
        assert uid is None, (number, body)


def uid_of(body: bytes, kind: str) -> str | None:
    """Return the uid of a review that is valid JSON, or None."""
    try:
        review = json.loads(body.decode(), parse_constant=float.fromhex)
        json.dumps(review, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    request = review.get("request") if isinstance(review, dict) and review.get("kind") == kind else None
    uid = request.get("uid") if isinstance(request, dict) else None
    return uid if isinstance(uid, str) and uid else None


@asynccontextmanager
async def webhooks_process(folder: Path) -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    """Run `stowplan webhooks` without a cluster; yield its URL and a TLS context that trusts it."""
    now = datetime.now(UTC)
    authority = new_authority("garbage", lifetime=timedelta(days=1), now=now)
    leaf = new_leaf(authority, ("localhost",), lifetime=timedelta(days=1), now=now)
    (folder / "tls.crt").write_bytes(leaf.certificate)
    (folder / "tls.key").write_bytes(leaf.key)
    serving = {"bindAddress": "127.0.0.1", "port": 0, "metricsPort": 0, "healthPort": 0, "drainSeconds": 0}
    serving |= {"certificateDirectory": str(folder), "logFormat": "json"}
    (folder / "webhooks.yaml").write_text(json.dumps({"serving": serving}), encoding="utf-8")
    command = ("-m", "apiserver.cli", "webhooks", "--config", str(folder / "webhooks.yaml"))
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=log, stderr=log, env={"HOME": str(folder)}
        )
    try:
        async with asyncio.timeout(60):
            while (port := _port(folder / "log")) is None:  # noqa: ASYNC110 (a file has no events)
                await asyncio.sleep(0.05)
        yield f"https://localhost:{port}", ssl.create_default_context(cadata=authority.certificate.decode())
        assert process.returncode is None
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _port(log: Path) -> str | None:
    """Return the port that the process serves on, or None before it serves."""
    for line in log.read_text(encoding="utf-8").splitlines():
        told = json.loads(line) if line.startswith("{") else {}
        if told.get("event") == "serving":
            ports = dict(part.split() for part in told["ports"].split(", "))
            return str(ports["https"])
    return None
