"""Markers for `Annotated` that constrain a single field.

A marker carries OpenAPI keywords as in a CRD. Patterns are in RE2 syntax, as in Go. A pattern may carry a
description for error messages, since a regular expression is not self-explanatory.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.schema.json import Json, JsonValue


@dataclass(frozen=True, eq=False, slots=True)
class Marker:
    """Schema keywords of one field, and the description of their constraint in error messages.

    Compared by identity: `typing` hashes the arguments of `Annotated`, and keyword values need not be
    hashable.
    """

    keywords: tuple[tuple[str, JsonValue], ...]
    says: str = ""

    def as_json(self) -> Json:
        """Return the keywords as a schema fragment."""
        return dict(self.keywords)


def Range(minimum: float | None = None, maximum: float | None = None) -> Marker:  # noqa: N802 (a keyword of the declaration language)
    """Return the bounds of a number, both inclusive."""
    return _marker(minimum=minimum, maximum=maximum)


def Width(bits: int, *, signed: bool = True) -> Marker:  # noqa: N802 (as above)
    """Return the width of an integer: its format, and the bounds that follow from it.

    OpenAPI has formats for signed integers only, and API servers validate numbers against them, so an
    unsigned integer has the next wider format.
    """
    if signed:
        return _marker(format=f"int{bits}", minimum=-(2 ** (bits - 1)), maximum=2 ** (bits - 1) - 1)
    return _marker(format=f"int{bits * 2}", minimum=0, maximum=2**bits - 1)


def Length(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (as above)
    """Return the bounds on the length of a text in characters."""
    return _marker(minLength=minimum, maxLength=maximum)


def Pattern(regex: str, *, says: str) -> Marker:  # noqa: N802 (as above)
    """Return an RE2 pattern that a text must match, with its description."""
    return Marker((("pattern", regex),), says)


def Format(name: str) -> Marker:  # noqa: N802 (as above)
    """Return a format that the API server validates, such as `date-time`."""
    return _marker(format=name)


def Items(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (as above)
    """Return the bounds on the length of a list."""
    return _marker(minItems=minimum, maxItems=maximum)


def Atomic() -> Marker:  # noqa: N802 (as above)
    """Return the marker of an object that server-side apply replaces as a whole."""
    return _marker(**{"x-kubernetes-map-type": "atomic"})


def Properties(minimum: int | None = None, maximum: int | None = None) -> Marker:  # noqa: N802 (as above)
    """Return the bounds on the number of entries of a map."""
    return _marker(minProperties=minimum, maxProperties=maximum)


def MapKeys(*names: str) -> Marker:  # noqa: N802 (as above)
    """Return the marker of a list map, whose items are identified by these members (JSON names)."""
    return _marker(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(names)})


def _marker(**keywords: JsonValue) -> Marker:
    return Marker(tuple((name, value) for name, value in keywords.items() if value is not None))
