"""The state that planning carries from one cycle to the next, passed in and returned, never stored.

An empty state is sufficient after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.warm_start import DualPrices


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanningState:
    """The state between cycles."""

    prices: DualPrices | None = None
    """Dual prices of the last search, with which the next one starts."""
