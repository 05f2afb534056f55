"""`/convert`: every object of a list into another version, in order, without any look-up."""

from __future__ import annotations

from msgspec import Raw

from apiserver.kinds.splicing import convert_text
from apiserver.schema.json import Json
from webhooks.review import ConversionRequest


class UnconvertibleError(Exception):
    """The request asks for a version or kind that nothing here converts to."""


def convert_all(request: ConversionRequest) -> list[Json | Raw]:
    """Return the objects of a conversion request in the desired version, as many and in the same order.

    Raises UnconvertibleError when kind or version are not ours, or an entry is no object at all.
    """
    desired = request.desired_api_version
    try:
        return [convert_text(text, desired) for text in request.objects]
    except KeyError as error:
        raise UnconvertibleError(f"nothing converts to {desired}: {error}") from error
    except RecursionError as error:
        raise UnconvertibleError("an object is nested too deeply to be read") from error
    except ValueError as error:
        raise UnconvertibleError(f"an entry of the list cannot be read: {error}") from error
