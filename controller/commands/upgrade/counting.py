"""Numbers of things in sentences."""

from __future__ import annotations


def count_text(number: int, noun: str) -> str:
    """Return a number of things, such as `1 object` or `2 objects`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
