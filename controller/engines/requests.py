"""Requests to engines and to Prometheus: credentials, bounded bodies, and causes of failures in words.

Credentials are a CA, a client certificate and a bearer token. All of them are files that are rotated by
others: the token is read for every round of requests, certificates are reloaded when their files have
changed.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Annotated, Any, Final

import aiohttp

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Length
from controller.engines.exposition import UnreadableMetricsError

_Stamp = tuple[tuple[str, int, int], ...]


FileName = Annotated[str, Length(maximum=4096)]
"""Path of a file; empty for none."""


@declaration()
class CredentialsConfig:
    """TLS settings and credentials of a client. Files may be replaced while the controller runs."""

    ca_file: FileName = ""
    """CA certificates to trust instead of the system's."""

    certificate_file: FileName = ""
    """Client certificate with its chain."""

    key_file: FileName = ""
    """Private key of the client certificate; empty if it is in the same file."""

    server_name: Annotated[str, Length(maximum=253)] = ""
    """Name that the server's certificate must be valid for; empty for the name or address in the URL."""

    insecure_skip_verify: bool = False
    """Whether to skip the verification of certificates. Anyone who takes over an address can then forge
    metrics."""

    token_file: FileName = ""
    """File with a bearer token. Requires TLS; for engines also `podNetworks`. It is sent to every pod that is
    scraped, including those that bindings name, so whoever can create these pods can read it: it must permit
    nothing but reading metrics."""

    insecure_token: bool = False
    """Whether the token may be sent even where others could read it."""


NO_CREDENTIALS: Final = CredentialsConfig()
"""No credentials: the system's CA certificates only."""


class CredentialFiles:
    """Turns credentials into request arguments; use one instance for each source."""

    def __init__(self, credentials: CredentialsConfig) -> None:
        self._credentials = credentials
        self._context: ssl.SSLContext | None = None
        self._stamp: _Stamp = ()

    async def arguments(self, *, is_encrypted: bool) -> dict[str, Any]:
        """Return the arguments for aiohttp's request methods.

        Raises UnreadableMetricsError for unusable files, naming them.
        """
        return await asyncio.to_thread(self._arguments, is_encrypted=is_encrypted)

    def _arguments(self, *, is_encrypted: bool) -> dict[str, Any]:
        credentials = self._credentials
        arguments: dict[str, Any] = {}
        if credentials.token_file:
            arguments["headers"] = {"Authorization": f"Bearer {_token(credentials.token_file)}"}
        if is_encrypted:
            arguments["ssl"] = self._current_context()
            if credentials.server_name:
                arguments["server_hostname"] = credentials.server_name
        return arguments

    def _current_context(self) -> ssl.SSLContext:
        credentials = self._credentials
        names = (credentials.ca_file, credentials.certificate_file, credentials.key_file)
        try:
            stamp = tuple(_stamp(name) for name in names if name)
            if self._context is None or stamp != self._stamp:
                self._context, self._stamp = _context(credentials), stamp
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(name for name in names if name)
            raise UnreadableMetricsError(f"certificates cannot be used ({files}): {error}") from error
        return self._context


def _context(credentials: CredentialsConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=credentials.ca_file or None)
    if credentials.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.certificate_file:
        context.load_cert_chain(credentials.certificate_file, credentials.key_file or None)
    return context


def _stamp(name: str) -> tuple[str, int, int]:
    status = Path(name).stat()
    return name, status.st_mtime_ns, status.st_ino


def _token(name: str) -> str:
    try:
        token = Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableMetricsError(f"the token cannot be read: {error}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise UnreadableMetricsError(f"{name} does not contain a token in one line of ASCII")
    return token


class OversizedBodyError(UnreadableMetricsError):
    """A response is longer than the limit."""


async def read_bounded(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """Return the whole body. Raises OversizedBodyError if it is longer than the limit."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit_bytes:
            raise OversizedBodyError(f"the response is longer than {limit_bytes} bytes")
    return bytes(body)


_CAUSES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, "not in time"),
    (aiohttp.ClientConnectorDNSError, "the host name cannot be resolved"),
    (aiohttp.ClientSSLError, "no TLS connection: check https and http in the URL, and the certificates"),
    (aiohttp.ServerDisconnectedError, "the connection was closed without an answer"),
    (aiohttp.ClientPayloadError, "the answer ended early"),
    (aiohttp.ClientResponseError, "the answer is not HTTP"),
)


def cause_of(error: Exception) -> str:
    """Return the cause of a failed request, such as `connection refused`.

    It is the same for every pod that fails in the same way.
    """
    wrong = getattr(error, "certificate_error", None)
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {wrong.verify_message}"
    for kind, text in _CAUSES:
        if isinstance(error, kind):
            return text
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else str(error) or "the connection failed"
