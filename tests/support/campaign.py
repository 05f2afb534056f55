"""Repetitions of randomized tests: a few in every run, many more in campaigns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

_TENTHS: Final = 10

TIMES: Final = int(os.environ.get("STOWPLAN_CAMPAIGN", "1"))
"""Factor relative to `make test`, set by `make fuzz-placement`, `make fuzz-laws` and `make chaos`."""


def often(count: int) -> int:
    """Return the number of draws where a single run draws `count` times."""
    return count * TIMES


def share(few: int, *, full: int) -> int:
    """Return the number of disturbances: a few in a single run, else the requested percentage of all.

    `make chaos` requests all.
    """
    return few if TIMES == 1 else max(few, full * TIMES // 100)


def rounds(count: int) -> Iterator[int]:
    """Yield numbers up to `count`; in a campaign, report progress after each tenth."""
    for number in range(count):
        if number % max(1, count // _TENTHS) == 0:
            tell(f"{number} of {count}")
        yield number


def tell(figures: str) -> None:
    """Print a campaign's progress or results, for `make chaos`; nothing in a single run."""
    if TIMES > 1:
        sys.stderr.write(f"{figures}\n")
