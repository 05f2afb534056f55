"""Reloading of certificates while a server runs, on the event loops of asyncio and uvloop."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from support.campaign import rounds, share, tell

from apiserver.serving import authority
from apiserver.serving.authority import KeyPair
from apiserver.serving.tls import ServerTls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from unit.serving.conftest import CertificateFiles

SERVICE = "stowplan-test.ns.svc"
ROTATIONS = share(12, full=1000)
Run: TypeAlias = "Callable[[Coroutine[Any, Any, None]], None]"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Return a function that runs a coroutine, on each kind of event loop."""

    def run_on(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(coroutine, 20 + ROTATIONS))

    return run_on


class Server:
    """A TLS server that returns the client's name to the client."""

    def __init__(self, files: CertificateFiles, port: int) -> None:
        """Store the files and the port."""
        self.files = files
        self.port = port

    async def ask(
        self, *, name: str | None = SERVICE, identity: tuple[Path, Path] | None = None, **context: Any
    ) -> tuple[str, int]:
        """Connect; return the response and the serial number of the server's certificate."""
        client = self.files.client_context(identity=identity)
        for option, value in context.items():
            setattr(client, option, value)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=client, server_hostname=name
        )
        text = (await reader.read()).decode()
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return text, x509.load_der_x509_certificate(der).serial_number


@asynccontextmanager
async def serving(tls: ServerTls, files: CertificateFiles) -> AsyncIterator[Server]:
    """Run the server."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert")
        names = [value for part in peer["subject"] for _, value in part] if peer else []
        writer.write(f"hello {names}".encode())
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=tls.context)
    try:
        yield Server(files, server.sockets[0].getsockname()[1])
    finally:
        server.close()


def serial_on_disk(files: CertificateFiles) -> int:
    """Return the serial number of the certificate in the file."""
    return x509.load_pem_x509_certificate(files.certificate.read_bytes()).serial_number


def test_a_renewed_certificate_is_served_to_new_connections(run: Run, files: CertificateFiles) -> None:
    """It does not depend on a server name, and an unchanged file is not reloaded."""

    async def check() -> None:
        tls = ServerTls(files.certificate, files.key)
        async with serving(tls, files) as server:
            assert await server.ask() == ("hello []", serial_on_disk(files))
            assert not tls.reload()
            files.renew()
            assert tls.reload()
            assert await server.ask() == ("hello []", serial_on_disk(files))
            _, serial = await server.ask(name="", check_hostname=False)
            assert serial == serial_on_disk(files)

    run(check())


def encrypted(pair: KeyPair) -> KeyPair:
    """Return the pair with its key encrypted by a password."""
    key = load_pem_private_key(pair.key, password=None)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    return KeyPair(certificate=pair.certificate, key=secret)


HOUR = timedelta(hours=1)
DAMAGES: dict[str, Callable[[CertificateFiles], object]] = {
    "a certificate without its key": lambda f: f.certificate.write_bytes(f.leaf().certificate),
    "a key without its certificate": lambda f: f.key.write_bytes(f.leaf().key),
    "an empty certificate": lambda f: f.certificate.write_bytes(b""),
    "an empty key": lambda f: f.key.write_bytes(b""),
    "a missing file": lambda f: f.key.unlink(),
    "not PEM": lambda f: f.certificate.write_bytes(b"\xff\xfe"),
    "an incomplete certificate": lambda f: f.certificate.write_bytes(f.leaf().certificate[:200]),
    "an encrypted key": lambda f: f.put(encrypted(f.leaf())),
    "an expired certificate": lambda f: f.put(f.leaf(lifetime=HOUR, now=f.now - 2 * HOUR)),
    "a certificate that is not valid yet": lambda f: f.put(f.leaf(lifetime=HOUR, now=f.now + 2 * HOUR)),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_an_invalid_pair_leaves_the_last_valid_one_in_service(
    run: Run, files: CertificateFiles, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is logged once, and the next valid pair is loaded."""

    async def check() -> None:
        tls = ServerTls(files.certificate, files.key)
        serial = serial_on_disk(files)
        async with serving(tls, files) as server:
            DAMAGES[how](files)
            caplog.clear()
            assert [tls.reload() for _ in range(3)] == [False] * 3
            assert caplog.messages == ["certificate not usable"]
            assert tls.why_not_ready() is None
            assert (await server.ask())[1] == serial
            files.renew()
            assert tls.reload()
            assert (await server.ask())[1] == serial_on_disk(files)

    run(check())


def test_without_files_handshakes_are_rejected_until_the_files_exist(
    run: Run, files: CertificateFiles
) -> None:
    """The readiness check gives the reason."""

    async def check() -> None:
        pair = KeyPair(certificate=files.certificate.read_bytes(), key=files.key.read_bytes())
        files.key.unlink()
        tls = ServerTls(files.certificate, files.key)
        async with serving(tls, files) as server:
            assert "No such file" in str(tls.why_not_ready())
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await server.ask()
            files.put(pair)
            tls.reload()
            assert (await server.ask())[0] == "hello []"

    run(check())


@asynccontextmanager
async def kept_alive(tls: ServerTls, files: CertificateFiles) -> AsyncIterator[Callable[[], Any]]:
    """Serve lines; yield a function that sends one on each of several open connections."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=tls.context)
    port, client = server.sockets[0].getsockname()[1], files.client_context()
    kept = [
        await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=SERVICE)
        for _ in range(4)
    ]

    async def call_all() -> None:
        for _, writer in kept:
            writer.write(b"there\n")
        assert {await reader.readline() for reader, _ in kept} == {b"there\n"}

    try:
        yield call_all
    finally:
        for _, writer in kept:
            writer.close()
        server.close()


def test_rotations_under_load_fail_no_connection(run: Run, files: CertificateFiles) -> None:
    """Open connections continue, and new ones get the last valid pair while some new pairs are invalid."""

    async def check() -> None:
        tls = ServerTls(files.certificate, files.key)
        async with serving(tls, files) as server, kept_alive(tls, files) as call_all:
            good, damages = serial_on_disk(files), itertools.cycle(DAMAGES.values())
            for number in rounds(ROTATIONS):
                asking = [asyncio.create_task(server.ask()) for _ in range(4)]
                await asyncio.sleep(0)  # some handshakes happen before the change, some after
                files.renew()
                if number % 3:
                    good = serial_on_disk(files)
                else:
                    next(damages)(files)
                assert tls.reload() == bool(number % 3)
                await call_all()
                assert {text for text, _ in await asyncio.gather(*asking)} == {"hello []"}
                assert (await server.ask())[1] == good
        tell(f"{ROTATIONS} rotations: {9 * ROTATIONS} calls, none failed")

    run(check())


def test_follow_checks_the_files_periodically(files: CertificateFiles, run: Run) -> None:
    """It checks every ten seconds, and every second while there is no certificate."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            files.key.write_bytes(key)
        if len(waits) == 4:
            raise asyncio.CancelledError

    key = files.key.read_bytes()
    files.key.unlink()

    async def check() -> None:
        with pytest.raises(asyncio.CancelledError):
            await ServerTls(files.certificate, files.key).follow(sleep=sleep)

    run(check())
    assert waits == [1.0, 1.0, 10.0, 10.0]


def test_client_certificates_are_verified_by_the_trusted_authorities(
    run: Run, files: CertificateFiles
) -> None:
    """A client without a certificate has no name, and one of another authority is rejected."""

    async def check() -> None:
        front_proxy = authority.new_authority("front", lifetime=timedelta(days=1), now=files.now)
        trusted = files.client_identity("front-proxy-client", issuer=front_proxy)
        untrusted = files.client_identity("stranger")
        tls = ServerTls(files.certificate, files.key, client_authorities=b"")
        async with serving(tls, files) as server:
            assert (await server.ask(identity=trusted))[0] == "", "nobody is trusted yet"
            assert (await server.ask())[0] == "hello []"
            tls.trust_clients(front_proxy.certificate)
            assert (await server.ask(identity=trusted))[0] == "hello ['front-proxy-client']"
            assert (await server.ask(identity=untrusted))[0] == ""
            assert (await server.ask())[0] == "hello []"
            tls.trust_clients(files.authority.certificate)
            assert (await server.ask(identity=trusted))[0] == "", "trust can be taken away again"
            assert (await server.ask(identity=untrusted))[0] == "hello ['stranger']"

    run(check())


def test_unusable_client_authorities_change_nothing(run: Run, files: CertificateFiles) -> None:
    """The previous authorities stay trusted."""

    async def check() -> None:
        identity = files.client_identity("front-proxy-client")
        tls = ServerTls(files.certificate, files.key, client_authorities=files.authority.certificate)
        async with serving(tls, files) as server:
            tls.trust_clients(b"\xffrubbish")
            assert (await server.ask(identity=identity))[0] == "hello ['front-proxy-client']"

    run(check())


@pytest.mark.parametrize(
    "context",
    [
        pytest.param({"maximum_version": ssl.TLSVersion.TLSv1_1}, id="TLS 1.1"),
        pytest.param(
            {"maximum_version": ssl.TLSVersion.TLSv1_2, "ciphers": "AES128-SHA"},
            id="a cipher without forward secrecy",
        ),
        pytest.param(
            {"maximum_version": ssl.TLSVersion.TLSv1_2, "ciphers": "ECDHE-ECDSA-AES128-SHA256"},
            id="a CBC cipher",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_tls_versions_and_ciphers_are_rejected(
    run: Run, files: CertificateFiles, context: dict[str, Any]
) -> None:
    """TLS 1.2 or later, forward secrecy and authenticated encryption are required."""

    async def check() -> None:
        client = files.client_context()
        ciphers = context.get("ciphers")
        if ciphers:
            client.set_ciphers(ciphers)
        client.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        client.maximum_version = context["maximum_version"]
        tls = ServerTls(files.certificate, files.key)
        async with serving(tls, files) as server:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection("127.0.0.1", server.port, ssl=client, server_hostname=SERVICE)

    run(check())


def test_only_http_1_1_is_negotiated(run: Run, files: CertificateFiles) -> None:
    """A client that prefers HTTP/2 gets HTTP/1.1, and no session ticket."""

    async def check() -> None:
        client = files.client_context()
        client.set_alpn_protocols(["h2", "http/1.1"])
        async with serving(ServerTls(files.certificate, files.key), files) as server:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=client, server_hostname=SERVICE
            )
            await reader.read()
            connection = writer.get_extra_info("ssl_object")
            assert (connection.version(), connection.selected_alpn_protocol()) == ("TLSv1.3", "http/1.1")
            assert not connection.session.has_ticket
            writer.close()

    run(check())


def test_the_process_is_not_ready_in_the_last_tenth_of_the_certificate_s_validity(
    files: CertificateFiles,
) -> None:
    """A missing renewal is noticed before clients fail."""
    now = files.now.timestamp()
    moment = [now]
    tls = ServerTls(files.certificate, files.key, now=lambda: moment[0])
    verdicts = []
    for hours in (0, 21, 22, 30):
        moment[0] = now + hours * 3600
        verdicts.append(tls.why_not_ready() is None)

    assert verdicts == [True, True, False, False]
