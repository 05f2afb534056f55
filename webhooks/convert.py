"""`/convert`: converts a list of objects to another version, in order, without any lookup."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Final

import msgspec
from msgspec import Raw

from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json, JsonValue
from webhooks.review import ConversionRequest

_TURN_SECONDS: Final = 0.02

_LARGEST_BYTES: Final = 4 << 20
"""The maximum size of the text of an object, in bytes: kube-apiserver accepts 3 MiB in a request. Decoded, an
object takes many times as much."""


_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class UnconvertibleError(Exception):
    """No conversion exists for the requested version or kind, or an object cannot be decoded."""


def converted(request: ConversionRequest) -> Iterator[Raw]:
    """Yield the objects of a conversion request in the desired version, in the order of the request.

    Each is encoded again before the next one is decoded, so that a long list takes little memory. Raises
    UnconvertibleError for an unknown kind or version, and for an entry that cannot be decoded, and
    RecursionError for one that is nested too deeply.
    """
    desired = request.desired_api_version
    try:
        for text in request.objects:
            yield Raw(_encode(convert(_decoded(text), desired)))
    except KeyError as error:
        raise UnconvertibleError(f"cannot convert to {desired}: {error}") from error
    except ValueError as error:
        raise UnconvertibleError(f"an entry of the list cannot be read: {error}") from error


def _decoded(text: Raw) -> Json:
    """Return an object. Raises ValueError for a text that is too large or no object."""
    if memoryview(text).nbytes > _LARGEST_BYTES:
        why = f"it has more than {_LARGEST_BYTES} bytes, and no API server stores such an object"
        raise ValueError(why)
    value: JsonValue = _decode(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004 (an invalid value, not a wrong Python type)
    return value


async def convert_all(request: ConversionRequest) -> list[Raw]:
    """Return all converted objects, yielding to the event loop in long lists. Raises as `converted`."""
    objects, began_seconds = [], monotonic()
    for each in converted(request):
        objects.append(each)
        if monotonic() - began_seconds > _TURN_SECONDS:
            await asyncio.sleep(0)
            began_seconds = monotonic()
    return objects
