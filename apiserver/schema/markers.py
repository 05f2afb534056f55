"""Markers: what a single field allows, as named words inside `Annotated`.

A marker carries OpenAPI keywords as a CRD writes them. Patterns are in Go's RE2 dialect. A pattern may
carry the words in which a refusal explains it, since a regular expression explains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.schema.json import Json, JsonValue


@dataclass(frozen=True, eq=False, slots=True)
class Marker:
    """Schema keywords of one field, and how a refusal by them is put into words.

    Compared by identity: `typing` hashes what stands in `Annotated`, and keyword values need not be
    hashable.
    """

    keywords: tuple[tuple[str, JsonValue], ...]
    says: str = ""

    def as_json(self) -> Json:
        """Return the keywords as a schema fragment."""
        return dict(self.keywords)


def Range(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (reads as a word of the declaration language)
    """Return the bounds of a number, both included."""
    return _marker(minimum=minimum, maximum=maximum)


def Width(bits: int, *, signed: bool = True) -> Marker:  # noqa: N802 (as above)
    """Return the width that programs hold an integer in: its format, and the bounds that follow from it.

    OpenAPI has formats for signed integers alone, and servers hold numbers against them: an unsigned one has
    the next wider format.
    """
    if signed:
        return _marker(format=f"int{bits}", minimum=-(2 ** (bits - 1)), maximum=2 ** (bits - 1) - 1)
    return _marker(format=f"int{bits * 2}", minimum=0, maximum=2**bits - 1)


def Length(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (as above)
    """Return the bounds of a text's length in characters."""
    return _marker(minLength=minimum, maxLength=maximum)


def Pattern(regex: str, *, says: str) -> Marker:  # noqa: N802 (as above)
    """Return a pattern in RE2 that a text must match, and what it demands in words."""
    return Marker((("pattern", regex),), says)


def Format(name: str) -> Marker:  # noqa: N802 (as above)
    """Return a format that the API server itself enforces, such as `date-time`."""
    return _marker(format=name)


def Items(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (as above)
    """Return the bounds of a list's length."""
    return _marker(minItems=minimum, maxItems=maximum)


def Atomic() -> Marker:  # noqa: N802 (as above)
    """Return that an object is replaced whole by server-side apply."""
    return _marker(**{"x-kubernetes-map-type": "atomic"})


def Properties(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (as above)
    """Return the bounds of the number of a map's entries."""
    return _marker(minProperties=minimum, maxProperties=maximum)


def MapKeys(*names: str) -> Marker:  # noqa: N802 (as above)
    """Return that a list is a map: its items are told apart by these members (JSON names)."""
    return _marker(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(names)})


def _marker(**keywords: JsonValue) -> Marker:
    return Marker(tuple((name, value) for name, value in keywords.items() if value is not None))
