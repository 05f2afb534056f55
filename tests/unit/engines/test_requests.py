"""Requests to engines and to Prometheus: credentials, and the causes of failures in words."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from support.served import LOOPBACK, served, serving_pod
from support.stub_engine import exposition

from apiserver.serving import authority
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.prometheus import PrometheusSource
from controller.engines.requests import CredentialFiles, CredentialsConfig, cause_of
from controller.engines.scraping import ScrapeLimits, Scraper, ScrapeResult

POD = {"metadata": {"namespace": "ns", "name": "p"}}
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def sending(text: bytes) -> Answer:
    """Return a server's answer to a connection, after which it closes it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(text)
        await writer.drain()
        writer.close()

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read until the client closes the connection."""
    await reader.read()
    writer.close()


async def failure(url: str) -> str:
    """Return why Prometheus has no answer."""
    async with PrometheusSource(url, timeout_seconds=0.5) as source:
        return (await source.scrape([POD])).failures["ns", "p"]


ANSWERS = {
    "nothing": ("http", silent, "Prometheus: not in time"),
    "another protocol": ("http", sending(b"SSH-2.0\r\n\r\n"), "Prometheus: the answer is not HTTP"),
    "half an answer": (
        "http",
        sending(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        "Prometheus: the answer ended early",
    ),
    "HTTP for HTTPS": (
        "https",
        sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "Prometheus: no TLS connection: check https and http in the URL, and the certificates",
    ),
}


@pytest.mark.parametrize(("scheme", "answer", "want"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_the_cause_of_a_failed_connection_is_told_in_words(
    scheme: str, answer: Answer, want: str
) -> None:
    """Names of exceptions say nothing to an operator."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await failure(f"{scheme}://127.0.0.1:{port}") == want


async def test_a_closed_port_and_an_unknown_name_are_told_apart() -> None:
    """The port is bound, so that no other process listens on it."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert await failure(f"http://127.0.0.1:{port}") == "Prometheus: connection refused"
    assert await failure("http://prometheus.invalid") == "Prometheus: the host name cannot be resolved"


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (OSError(113, "x"), "no route to host"),
        (ValueError("its own words"), "its own words"),
        (RuntimeError(), "the connection failed"),
    ],
)
def test_other_errors_have_their_own_text(error: Exception, want: str) -> None:
    """None is without any."""
    assert cause_of(error) == want


if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from apiserver.schema.json import Json

SERVER = "engines.example"
DAY = timedelta(days=1)


class Issued:
    """A certificate authority, a server's key pair and a token, as files."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.certificate, self.key = folder / "ca.crt", folder / "tls.crt", folder / "tls.key"
        self.token = folder / "token"
        self.token.write_text("secret\n")
        self.issue()

    def issue(self) -> None:
        """Write a new authority and a new key pair."""
        now = datetime.now(UTC)
        issuer = authority.new_authority("engines", lifetime=10 * DAY, now=now)
        leaf = authority.new_leaf(issuer, (SERVER,), lifetime=DAY, now=now)
        self.ca.write_bytes(issuer.certificate)
        self.certificate.write_bytes(leaf.certificate)
        self.key.write_bytes(leaf.key)

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Json]:
        """Serve `/metrics` over TLS to requests with the token; yields the pod."""

        async def metrics(request: web.Request) -> web.Response:
            known = request.headers.get("Authorization") == f"Bearer {self.token.read_text().strip()}"
            text = exposition(model="m", usage=0.5, waiting=1)
            return web.Response(text=text) if known else web.Response(status=401)

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        async with served(metrics, tls=context) as port:
            yield serving_pod(port)

    def limits(self, **changes: Any) -> ScrapeLimits:
        """Return scrape limits with the credentials for this engine."""
        good = {"ca_file": str(self.ca), "server_name": SERVER, "token_file": str(self.token)}
        credentials = CredentialsConfig(**good | changes)
        return replace(LOOPBACK, timeout_seconds=5, scheme="https", credentials=credentials)


@pytest.fixture
def issued(tmp_path: Path) -> Issued:
    """Return an authority with its files."""
    return Issued(tmp_path)


async def ask(issued: Issued, limits: ScrapeLimits) -> ScrapeResult:
    """Scrape the engine once."""
    async with issued.engine() as pod, Scraper(limits) as scraper:
        return await scraper.scrape([pod])


async def test_an_engine_with_a_trusted_certificate_is_scraped_with_the_token(issued: Issued) -> None:
    """The certificate is verified for the one configured server name."""
    scraped = await ask(issued, issued.limits())

    assert scraped.failures == {}
    assert list(scraped.readings) == [("ns", "engine")]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"ca_file": ""}, "its certificate is not trusted", id="an unknown authority"),
        pytest.param({"server_name": "other.example"}, "mismatch", id="a certificate for another name"),
        pytest.param(
            {"server_name": ""}, "mismatch", id="no server name: the certificate is not for the pod's address"
        ),
        pytest.param({"token_file": ""}, "HTTP 401", id="no token"),
        pytest.param({"token_file": "/nowhere/token"}, "the token cannot be read", id="a missing token file"),
        pytest.param(
            {"ca_file": "/nowhere/ca.crt"}, "certificates cannot be used", id="a missing authority file"
        ),
    ],
)
async def test_a_scrape_with_wrong_credentials_fails_with_its_reason(
    issued: Issued, changes: dict[str, str], want: str
) -> None:
    """The failure message names what is wrong."""
    scraped = await ask(issued, issued.limits(**changes))

    assert scraped.readings == {}
    assert want in scraped.failures["ns", "engine"]


async def test_insecure_skip_verify_disables_certificate_verification(issued: Issued) -> None:
    """Without an authority and a server name, the engine is still scraped."""
    scraped = await ask(issued, issued.limits(ca_file="", server_name="", insecure_skip_verify=True))

    assert list(scraped.readings) == [("ns", "engine")]


async def test_rotated_files_are_read_again(issued: Issued) -> None:
    """A new authority, key pair and token take effect without a restart."""
    async with Scraper(issued.limits()) as scraper:
        for token in ("first", "second"):
            issued.issue()
            issued.token.write_text(token)
            async with issued.engine() as pod:
                scraped = await scraper.scrape([pod])
            assert scraped.failures == {}


@pytest.mark.parametrize("text", ["", "two\nlines", "ümlaut", "nul\x00"])
async def test_a_token_that_is_invalid_in_a_header_is_rejected(tmp_path: Path, text: str) -> None:
    """The error is raised before any request is sent."""
    (tmp_path / "token").write_text(text)
    files = CredentialFiles(CredentialsConfig(token_file=str(tmp_path / "token")))

    with pytest.raises(UnreadableMetricsError, match="does not contain a token in one line"):
        await files.arguments(is_encrypted=True)


async def test_without_tls_only_the_token_is_read(issued: Issued) -> None:
    """For an unencrypted source, certificate files are not opened."""
    files = CredentialFiles(CredentialsConfig(ca_file="/nowhere", token_file=str(issued.token)))

    assert await files.arguments(is_encrypted=False) == {"headers": {"Authorization": "Bearer secret"}}
