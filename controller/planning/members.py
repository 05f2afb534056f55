"""Find unknown members and unknown enum values in a decoded JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from msgspec import inspect


def member_problems(value: object, record: type) -> Iterator[str]:
    """Yield a message for each member that a decoder would ignore, and for each unknown enum value.

    Values of the wrong type are left to the decoder.
    """
    yield from _of(value, inspect.type_info(record), "")


def _of(value: object, shape: inspect.Type, where: str) -> Iterator[str]:
    match shape:
        case inspect.DataclassType() if isinstance(value, dict):
            shapes = {field.encode_name: field.type for field in shape.fields}
            for name, member in value.items():
                place = f"{where}.{name}" if where else name
                if name in shapes:
                    yield from _of(member, shapes[name], place)
                else:
                    yield f"{place}: there is no such member; {_instead(name, list(shapes))}"
        case inspect.CollectionType() if isinstance(value, list):
            for position, item in enumerate(value):
                yield from _of(item, shape.item_type, f"{where}[{position}]")
        case inspect.UnionType():
            for option in shape.types:
                yield from _of(value, option, where)
        case inspect.EnumType() if isinstance(value, str):
            allowed = [str(item.value) for item in shape.cls]
            if value not in allowed:
                yield f"{where}: must be one of {', '.join(allowed)}, was {value!r}"


def _instead(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"is {close[0]} meant?" if close else f"allowed are {', '.join(sorted(known))}"
