"""Server-side TLS: modern ciphers only, and certificates that are reloaded at runtime.

A live `SSLContext` is never modified: a failed `load_cert_chain` would break every later handshake, and
trusted authorities can only be added to it. Each reload builds a new context, tests it with a handshake in
memory, and only then uses it for new connections. On any error, the last valid pair stays in use.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.log import EventLogger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

log = EventLogger(__name__)

POLL_SECONDS = 10.0
_FIRST_POLL_SECONDS = 1.0
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
_LAST_TENTH = 0.1


class CertificateUnusable(Exception):  # noqa: N818 (the name describes the event)
    """The certificate files cannot be used: they are missing, empty, mismatched or expired."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingCertificate:
    """A tested context and the validity of its certificate, in seconds since the epoch."""

    context: ssl.SSLContext
    begin_seconds: float
    end_seconds: float
    digest: bytes


class ServerTls:
    """Serves the certificate and key of two mounted files, and follows their changes.

    The files may be missing at first: until they exist, handshakes fail and `why_not_ready` returns the
    reason. If `client_authorities` is not None, the server requests client certificates: one that these
    authorities (PEM) have not issued fails the handshake, and the application decides about clients without
    one.
    """

    def __init__(
        self,
        certificate_path: Path,
        key_path: Path,
        *,
        client_authorities: bytes | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._paths = certificate_path, key_path
        self._client_authorities = client_authorities
        self._now = now
        self._certificate: ServingCertificate | None = None
        self._complaint = "not loaded yet"
        self.context = _new_context(None if client_authorities is None else b"")
        """The permanent context of the listener. It switches each new connection to the current context."""
        self.context.sni_callback = self._choose
        self.reload()

    @property
    def certificate(self) -> ServingCertificate | None:
        """The certificate for new connections."""
        return self._certificate

    def reload(self) -> bool:
        """Reload the files; return whether the pair changed. An invalid pair is logged once and ignored."""
        try:
            certificate = self._load()
        except CertificateUnusable as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.error(  # noqa: TRY400 (a traceback adds no information)
                    "certificate not usable", error=str(error), serving_old=self._certificate is not None
                )
            return False
        self._complaint = ""
        if self._certificate and self._certificate.digest == certificate.digest:
            return False
        self._certificate = certificate
        log.info("certificate in service", path=str(self._paths[0]), expires=_iso(certificate.end_seconds))
        return True

    def trust_clients(self, authorities: bytes) -> None:
        """Accept only client certificates of these authorities (PEM), from the next connection on."""
        self._client_authorities = authorities
        self.reload()

    async def follow(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Reload the files every ten seconds, or every second until there is a valid pair."""
        while True:
            await sleep(POLL_SECONDS if self._certificate else _FIRST_POLL_SECONDS)
            self.reload()

    def why_not_ready(self) -> str | None:
        """Return None while the certificate is valid, else the reason: a readiness check."""
        if self._certificate is None:
            return self._complaint
        begin, end = self._certificate.begin_seconds, self._certificate.end_seconds
        if self._now() > end - _LAST_TENTH * (end - begin):
            return f"the certificate expires at {_iso(end)} and has not been renewed"
        return None

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Switch a new connection to the current context; OpenSSL calls this even without a server name."""
        if self._certificate:
            connection.context = self._certificate.context

    def _load(self) -> ServingCertificate:
        contents = [self._client_authorities or b""]
        try:
            contents += [path.read_bytes() for path in self._paths]
        except OSError as error:
            raise CertificateUnusable(f"{error.filename}: {error.strerror}") from error
        digest = hashlib.sha256(b"\0".join(contents)).digest()
        if self._certificate and self._certificate.digest == digest:
            return self._certificate
        try:
            context = _new_context(self._client_authorities)
            context.load_cert_chain(*self._paths, password=_no_password)
            begin, end = _prove(context, contents[1])
        except (ssl.SSLError, ValueError, OSError) as error:
            raise CertificateUnusable(f"{self._paths[0]}: {error}") from error
        return ServingCertificate(context=context, begin_seconds=begin, end_seconds=end, digest=digest)


def _new_context(client_authorities: bytes | None) -> ssl.SSLContext:
    """Return a server context without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # API servers do not resume sessions, so tickets would be wasted
    if client_authorities is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        if client_authorities.strip():
            context.load_verify_locations(cadata=client_authorities.decode("ascii"))
    return context


def _prove(server_context: ssl.SSLContext, certificates: bytes) -> tuple[float, float]:
    """Perform a handshake in memory, trusting only this certificate; return its validity.

    This verifies key, algorithm and dates without a parser of our own. Raises `SSLError`.
    """
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client_context.load_verify_locations(cadata=certificates.decode("ascii"))
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(down, up)
    server = server_context.wrap_bio(up, down, server_side=True)
    waiting = [client, server]
    while waiting:
        waiting = [side for side in waiting if not _advance(side)]
    certificate = client.getpeercert() or {}
    return (
        float(ssl.cert_time_to_seconds(str(certificate["notBefore"]))),
        float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))),
    )


def _advance(side: ssl.SSLObject) -> bool:
    """Advance a handshake as far as possible; return True when it is complete."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _no_password() -> str:
    """Return no password, to keep OpenSSL from asking for that of an encrypted key on the terminal."""
    return ""


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
