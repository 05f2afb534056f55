"""`/convert`: converts a list of objects to another version, in order, without any lookup."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Final

from msgspec import Raw

from apiserver.kinds.llmd import usual
from apiserver.kinds.llmd.usual import Usual
from apiserver.kinds.splicing import convert_text
from webhooks.review import ConversionRequest, UsualConversionRequest

_TURN_SECONDS: Final = 0.02


class UnconvertibleError(Exception):
    """No conversion exists for the requested version or kind, or an object cannot be decoded."""


def converted(request: ConversionRequest | UsualConversionRequest) -> Iterator[Usual | Raw]:
    """Yield the objects of a conversion request in the desired version, in the order of the request.

    Raises UnconvertibleError for an unknown kind or version, and for an entry that cannot be decoded.
    """
    desired = request.desired_api_version
    try:
        yield from _converted(request, desired)
    except KeyError as error:
        raise UnconvertibleError(f"cannot convert to {desired}: {error}") from error
    except RecursionError as error:
        raise UnconvertibleError("an object is nested too deeply to be read") from error
    except ValueError as error:
        raise UnconvertibleError(f"an entry of the list cannot be read: {error}") from error


def _converted(request: ConversionRequest | UsualConversionRequest, desired: str) -> Iterator[Usual | Raw]:
    if isinstance(request, ConversionRequest):
        yield from _converted_texts(request.objects, desired)
        return
    for position, value in enumerate(request.objects):
        if not usual.convert(value, desired):
            yield from _converted_texts(request.texts()[position:], desired)
            return
        yield value


def _converted_texts(texts: list[Raw], desired: str) -> Iterator[Raw]:
    """Convert objects of which the first is probably not in the usual form."""
    for position, text in enumerate(texts):
        yield (usual.converted(text, desired) if position else None) or convert_text(text, desired)


async def convert_all(request: ConversionRequest | UsualConversionRequest) -> list[Usual | Raw]:
    """Return all converted objects, yielding to the event loop in long lists. Raises UnconvertibleError."""
    objects, began_seconds = [], monotonic()
    for each in converted(request):
        objects.append(each)
        if monotonic() - began_seconds > _TURN_SECONDS:
            await asyncio.sleep(0)
            began_seconds = monotonic()
    return objects
