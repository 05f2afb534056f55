"""What a question to an engine or to Prometheus carries: trust, a client certificate, a bearer token.

All of it comes from files, which others rotate: a token is read for every round of questions, certificates
again when their files have changed.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.observe.said import UnreadableMetricsError

_Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """Where it lies. Empty names are files that are not used."""

    ca_file: str = ""
    """Certificates to trust instead of the system's."""

    certificate_file: str = ""
    """Client certificate, with its chain."""

    key_file: str = ""
    server_name: str = ""
    """Name that the certificate of the other side must be for; empty for the one that was asked."""

    insecure_skip_verify: bool = False
    """Whether anybody may answer."""

    token_file: str = ""


NO_CREDENTIALS: Final = Credentials()
"""The system's trust and nothing else."""


class CredentialFiles:
    """Turns credentials into arguments of a request; use one for each source."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._context: ssl.SSLContext | None = None
        self._stamp: _Stamp = ()

    async def arguments(self, *, is_encrypted: bool) -> dict[str, Any]:
        """Return arguments for aiohttp's request methods.

        Raises UnreadableMetricsError for files that cannot be used, naming them.
        """
        return await asyncio.to_thread(self._arguments, is_encrypted=is_encrypted)

    def _arguments(self, *, is_encrypted: bool) -> dict[str, Any]:
        credentials = self._credentials
        found: dict[str, Any] = {}
        if credentials.token_file:
            found["headers"] = {"Authorization": f"Bearer {_token(credentials.token_file)}"}
        if is_encrypted:
            found["ssl"] = self._current_context()
            if credentials.server_name:
                found["server_hostname"] = credentials.server_name
        return found

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


def _context(credentials: Credentials) -> ssl.SSLContext:
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
