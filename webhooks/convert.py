"""`/convert`: every object of a list into another version, in order, without any look-up."""

from __future__ import annotations

from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json


class UnconvertibleError(Exception):
    """The request asks for a version or kind that nothing here converts to."""


def convert_all(request: Json) -> list[Json]:
    """Return the objects of a conversion request in the desired version, as many and in the same order.

    Raises UnconvertibleError when kind or version are not ours, or an entry is no object at all.
    """
    desired, objects = request.get("desiredAPIVersion"), request.get("objects")
    if not isinstance(desired, str) or not isinstance(objects, list):
        raise UnconvertibleError("the request names no desiredAPIVersion or holds no list of objects")
    try:
        return [_converted(value, desired) for value in objects]
    except KeyError as error:
        raise UnconvertibleError(f"nothing converts to {desired}: {error}") from error
    except RecursionError as error:
        raise UnconvertibleError("an object is nested too deeply to be read") from error


def _converted(value: Json, desired: str) -> Json:
    if not isinstance(value, dict):
        raise UnconvertibleError("an entry of the list is no object")
    return convert(value, desired)
