"""How long tests that draw at random go on: a little in every run, many times as long in campaigns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

_TENTHS: Final = 10

TIMES: Final = int(os.environ.get("STOWPLAN_CAMPAIGN", "1"))
"""So many times as long as `make test`; `make fuzz-placement`, `make fuzz-laws` and `make chaos` set it."""


def often(count: int) -> int:
    """Return how often to draw where a single run draws `count` times."""
    return count * TIMES


def share(few: int, *, full: int) -> int:
    """Return how often to disturb: a few times in a single run, else as many percent of all as was asked for.

    `make chaos` asks for all.
    """
    return few if TIMES == 1 else max(few, full * TIMES // 100)


def rounds(count: int) -> Iterator[int]:
    """Count up to so many; in a campaign, say after each tenth how far it is."""
    for number in range(count):
        if number % max(1, count // _TENTHS) == 0:
            tell(f"{number} of {count}")
        yield number


def tell(figures: str) -> None:
    """Say how a campaign goes, and what it came to: `make chaos` shows it. Nothing in a single run."""
    if TIMES > 1:
        sys.stderr.write(f"{figures}\n")
