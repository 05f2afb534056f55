"""Formatting of numbers as Kubernetes quantities."""

from __future__ import annotations

from typing import Final

_SUFFIXES: Final = ("m", "", "k", "M", "G", "T", "P", "E")
_THOUSAND: Final = 1000


def canonical_quantity(value_milli: int) -> str:
    """Return thousandths as a canonical quantity, such as `3`, `3300m` or `2k`: the largest exact suffix.

    Source: `k8s.io/apimachinery/pkg/api/resource/quantity.go`, decimal SI.
    """
    if value_milli == 0:
        return "0"
    number, position = value_milli, 0
    while number % _THOUSAND == 0 and position < len(_SUFFIXES) - 1:
        number, position = number // _THOUSAND, position + 1
    return f"{number}{_SUFFIXES[position]}"
