"""Certificate files, and a server process that tests start, query and signal."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from support import echo_server

from apiserver.serving import authority
from apiserver.serving.authority import KeyPair

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SERVICE = "stowplan-test.ns.svc"
DAY = timedelta(days=1)


class CertificateFiles:
    """A certificate authority, and the files with the server's key pair."""

    def __init__(self, folder: Path) -> None:
        """Start with a valid key pair."""
        self.folder = folder
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.now = datetime.now(UTC)
        self.authority = authority.new_authority("test", lifetime=10 * DAY, now=self.now)
        self.renew()

    def leaf(self, *, lifetime: timedelta = DAY, now: datetime | None = None) -> KeyPair:
        """Return a new server certificate with its key."""
        names = authority.service_names("stowplan-test", "ns")
        return authority.new_leaf(self.authority, names, lifetime=lifetime, now=now or self.now)

    def renew(self) -> None:
        """Write a new key pair to the files."""
        self.put(self.leaf())

    def put(self, pair: KeyPair) -> None:
        """Write this key pair to the files."""
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)

    def client_context(self, *, identity: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        """Return a client's context that trusts the authority and verifies strictly."""
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        if identity:
            context.load_cert_chain(*identity)
        return context

    def client_identity(self, name: str, *, issuer: KeyPair | None = None) -> tuple[Path, Path]:
        """Write a new client certificate with its key to files; return their paths."""
        issuer = issuer or self.authority
        issued_by = x509.load_pem_x509_certificate(issuer.certificate)
        issuer_key = load_pem_private_key(issuer.key, password=None)
        assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issued_by.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.now - DAY)
            .not_valid_after(self.now + DAY)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(issuer_key, hashes.SHA256())
        )
        paths = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return paths


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    """Return files with a valid key pair."""
    return CertificateFiles(tmp_path)


class ServerProcess:
    """A running `echo_server.py`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Wrap a process that has just been started."""
        self.process = process
        self.ports: dict[str, int] = {}
        self.log: list[dict[str, Any]] = []

    async def line(self) -> dict[str, Any]:
        """Wait for the next log line."""
        assert self.process.stderr is not None
        text = await self.process.stderr.readline()
        assert text, f"the server has ended: {self.log}"
        self.log.append(json.loads(text))
        return self.log[-1]

    async def serving(self) -> None:
        """Wait until the process serves."""
        while self.ports == {}:
            line = await self.line()
            if line["event"] == "serving":
                names = (part.split() for part in line["ports"].split(", "))
                self.ports = {name: int(port) for name, port in names}

    def url(self, path: str, listener: str = "https") -> str:
        """Return a URL of one of its listeners."""
        scheme = "https" if listener == "https" else "http"
        return f"{scheme}://127.0.0.1:{self.ports[listener]}{path}"

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    async def exit_code(self) -> int:
        """Wait for the end of the process; each remaining log line must be a JSON object."""
        assert self.process.stderr is not None
        self.log += [json.loads(line) for line in (await self.process.stderr.read()).splitlines()]
        return await self.process.wait()


@pytest.fixture
def start(files: CertificateFiles) -> Callable[..., Any]:
    """Return a context manager that runs a server with given options."""

    @asynccontextmanager
    async def run(**options: object) -> AsyncIterator[ServerProcess]:
        settings = {"certificate": str(files.certificate), "key": str(files.key)} | options
        process = await asyncio.create_subprocess_exec(
            sys.executable, echo_server.__file__, json.dumps(settings), stderr=asyncio.subprocess.PIPE
        )
        server = ServerProcess(process)
        try:
            async with asyncio.timeout(60):
                await server.serving()
                yield server
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    return run
