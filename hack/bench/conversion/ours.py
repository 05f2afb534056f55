"""Our conversion without a server: exactly what `webhooks.app` calls between request and response."""

from __future__ import annotations

from webhooks.convert import convert_all
from webhooks.review import decode_conversion, encode_converted


def answer(body: bytes) -> bytes:
    """Answer a review as `/convert` does."""
    request = decode_conversion(body)
    return encode_converted(request.uid, convert_all(request))
