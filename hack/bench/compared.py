"""What benchmarks compare, as tables and results files name it."""

from __future__ import annotations

from typing import Final

OURS: Final = "stowplan"
STRAIGHTFORWARD: Final = "straightforward"
EMPTY: Final = "empty handler"
