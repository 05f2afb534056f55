"""Read response bodies completely, up to a size limit."""

from __future__ import annotations

import aiohttp

from controller.engines.metrics import UnreadableMetricsError


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
