"""`/convert`: converts a list of objects to another version, in order, without any lookup."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Final

from msgspec import Raw

from apiserver.kinds.llmd import usual
from apiserver.kinds.splicing import convert_text
from webhooks.review import ConversionRequest

_TURN_SECONDS: Final = 0.02

_LARGEST_BYTES: Final = 4 << 20
"""The maximum size of the text of an object, in bytes: kube-apiserver accepts 3 MiB in a request. Decoded, an
object takes many times as much, also one in the usual form."""

_TOGETHER_BYTES: Final = 32 << 10
"""The total size from which objects are not decoded together with more. Decoding a long list as a whole would
leave memory in the allocator."""


class UnconvertibleError(Exception):
    """No conversion exists for the requested version or kind, or an object cannot be decoded."""


def converted(request: ConversionRequest) -> Iterator[Raw]:
    """Yield the objects of a conversion request in the desired version, in the order of the request.

    A text contains one object, or several separated by commas. Raises UnconvertibleError for an unknown kind
    or version, and for an entry that cannot be decoded, and RecursionError for one that is nested too deeply.
    """
    desired = request.desired_api_version
    try:
        for texts in _parts(request.objects):
            if whole := usual.converted(texts, desired):
                yield whole
            else:
                yield from _one_by_one(texts, desired)
    except KeyError as error:
        raise UnconvertibleError(f"cannot convert to {desired}: {error}") from error
    except ValueError as error:
        raise UnconvertibleError(f"an entry of the list cannot be read: {error}") from error


def _parts(texts: list[Raw]) -> Iterator[list[Raw]]:
    """Yield the texts in parts that are decoded together. Raises ValueError for a text that is too large."""
    part, size = list[Raw](), 0
    for text in texts:
        own = memoryview(text).nbytes
        if own > _LARGEST_BYTES:
            why = f"it has more than {_LARGEST_BYTES} bytes, and no API server stores such an object"
            raise ValueError(why)
        part.append(text)
        size += own
        if size >= _TOGETHER_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _one_by_one(texts: list[Raw], desired: str) -> Iterator[Raw]:
    """Convert objects of which at least one is not in the usual form."""
    for text in texts:
        yield (usual.converted([text], desired) if len(texts) > 1 else None) or convert_text(text, desired)


async def convert_all(request: ConversionRequest) -> list[Raw]:
    """Return all converted objects, yielding to the event loop in long lists. Raises as `converted`."""
    objects, began_seconds = [], monotonic()
    for each in converted(request):
        objects.append(each)
        if monotonic() - began_seconds > _TURN_SECONDS:
            await asyncio.sleep(0)
            began_seconds = monotonic()
    return objects
