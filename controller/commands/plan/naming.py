"""Lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def first_of(names: Sequence[str], most: int) -> str:
    """Return the names as a list; if there are more than `most`, the first of them and how many follow."""
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"
