"""The two that every benchmark compares, as tables and results files name them."""

from __future__ import annotations

from typing import Final

OURS: Final = "stowplan"
STRAIGHTFORWARD: Final = "straightforward"
