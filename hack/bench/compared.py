"""Names of the compared implementations in tables and results files."""

from __future__ import annotations

from typing import Final

OURS: Final = "stowplan"
STRAIGHTFORWARD: Final = "straightforward"
EMPTY: Final = "empty handler"
