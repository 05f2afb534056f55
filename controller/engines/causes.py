"""Say in words why a request for metrics failed, without names of exceptions and libraries."""

from __future__ import annotations

import os
import ssl
from typing import Final

import aiohttp

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
