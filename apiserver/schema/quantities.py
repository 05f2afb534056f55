"""Amounts as Kubernetes writes them: `2`, `0.5`, `500m`, `80Gi`, `1e3`.

Grammar and suffixes: `k8s.io/apimachinery/pkg/api/resource/quantity.go`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from apiserver.schema.remembering import remembered

_NUMBER: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_SUFFIX: Final = r"([KMGTPE]i|[numkMGTPE]|[eE](\+|-)?" + _NUMBER + r")?"

PATTERN: Final = rf"^(\+|-)?{_NUMBER}{_SUFFIX}$"
"""Any quantity. A text it takes may still be too large or too fine to be kept exactly."""

NON_NEGATIVE_PATTERN: Final = rf"^\+?{_NUMBER}{_SUFFIX}$"
"""A quantity without a minus."""

POSITIVE_PATTERN: Final = rf"^\+?([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*){_SUFFIX}$"
"""A quantity with a digit other than zero and without a minus."""

LONGEST_CHARACTERS: Final = 64
"""A longer text is no quantity, whatever it says: every field of this type is bounded so."""

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
    """Return a quantity as a number, or None for a text that is none (or beyond any use).

    A number is whole, but JSON may have written it as a float.
    """
    return _amount(quantity) if isinstance(quantity, str) else Decimal(quantity)


@remembered
def _amount(text: str) -> Decimal | None:
    found = _PARTS.fullmatch(text) if len(text) <= LONGEST_CHARACTERS else None
    if not found:
        return None
    number, suffix, exponent = found.group(1), found.group(4) or "", found.group(5) or ""
    if len(exponent.lstrip("eE+-")) > _MOST_EXPONENT_DIGITS:
        return None
    return Decimal(number + exponent) * _FACTORS[suffix]
