"""`/convert`: every object of a list into another version, in order, without any look-up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Final

from msgspec import Raw

from apiserver.kinds.splicing import convert_text
from webhooks.review import ConversionRequest

_TURN_SECONDS: Final = 0.02


class UnconvertibleError(Exception):
    """The request asks for a version or kind that nothing here converts to."""


def converted(request: ConversionRequest) -> Iterator[Raw]:
    """Yield the objects of a conversion request in the desired version, as many and in the same order.

    Raises UnconvertibleError when kind or version are not ours, or an entry is no object at all.
    """
    desired = request.desired_api_version
    try:
        for text in request.objects:
            yield convert_text(text, desired)
    except KeyError as error:
        raise UnconvertibleError(f"cannot convert to {desired}: {error}") from error
    except RecursionError as error:
        raise UnconvertibleError("an object is nested too deeply to be read") from error
    except ValueError as error:
        raise UnconvertibleError(f"an entry of the list cannot be read: {error}") from error


async def convert_all(request: ConversionRequest) -> list[Raw]:
    """Return all of them; a long list leaves turns to other requests. Raises UnconvertibleError."""
    objects, began_seconds = [], monotonic()
    for each in converted(request):
        objects.append(each)
        if monotonic() - began_seconds > _TURN_SECONDS:
            await asyncio.sleep(0)
            began_seconds = monotonic()
    return objects
