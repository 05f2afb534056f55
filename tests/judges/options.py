"""How many objects are judged."""

from __future__ import annotations

import os
from typing import Final

ENOUGH: Final = 2000
"""With as many objects of each kind every known difference occurs."""


def judged_count() -> int:
    """Return how many objects of each kind and version are judged: STOWPLAN_JUDGED, else enough."""
    return int(os.environ.get("STOWPLAN_JUDGED", ENOUGH))
