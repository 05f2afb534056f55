"""How long tests that draw at random go on: a little in every run, many times as long in campaigns."""

from __future__ import annotations

import os
from typing import Final

TIMES: Final = int(os.environ.get("STOWPLAN_CAMPAIGN", "1"))
"""So many times as long as `make test`; `make fuzz-placement` and `make fuzz-laws` set it."""


def often(count: int) -> int:
    """Return how often to draw where a single run draws `count` times."""
    return count * TIMES
