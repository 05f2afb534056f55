"""Parsing of quantities in Kubernetes syntax: `2`, `0.5`, `500m`, `80Gi`, `1e3`.

Grammar and suffixes: `k8s.io/apimachinery/pkg/api/resource/quantity.go`.
"""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from typing import Final

_NUMBER: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_SUFFIX: Final = r"([KMGTPE]i|[numkMGTPE]|[eE](\+|-)?" + _NUMBER + r")?"

PATTERN: Final = rf"^(\+|-)?{_NUMBER}{_SUFFIX}$"
"""The pattern of a quantity. A matching text may still be too large or too fine to be stored exactly."""

NON_NEGATIVE_PATTERN: Final = rf"^\+?{_NUMBER}{_SUFFIX}$"
"""The pattern of a quantity without a minus sign."""

POSITIVE_PATTERN: Final = rf"^\+?([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*){_SUFFIX}$"
"""The pattern of a quantity with a non-zero digit and without a minus sign."""

LONGEST_CHARACTERS: Final = 64
"""The maximum number of characters. Every field of this type has this limit, and a longer text is invalid."""

_PARTS: Final = re.compile(rf"([+-]?{_NUMBER})([KMGTPE]i|[numkMGTPE])?([eE][+-]?[0-9]+)?")
_FACTORS: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}
_MOST_EXPONENT_DIGITS: Final = 3


def amount(quantity: str | float) -> Decimal | None:
    """Return a quantity as a number, or None for a text that is invalid or beyond any practical range.

    A number is an integer, but JSON may represent it as a float.
    """
    if not isinstance(quantity, str):
        return Decimal(quantity)
    return _amount(quantity) if len(quantity) <= LONGEST_CHARACTERS else None


@functools.lru_cache(maxsize=4096)
def _amount(text: str) -> Decimal | None:
    match = _PARTS.fullmatch(text)
    if not match:
        return None
    number, suffix, exponent = match.group(1), match.group(4) or "", match.group(5) or ""
    if len(exponent.lstrip("eE+-")) > _MOST_EXPONENT_DIGITS:
        return None
    return Decimal(number + exponent) * _FACTORS[suffix]
