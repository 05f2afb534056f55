"""What effort is left, and how much of it one level may take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.planning.columns.program import Result
    from controller.planning.lexicographic import Limits

SHARE_PER_LEVEL = 0.5
"""Of the effort that is left."""


class Effort:
    """What is left of the limits, for all levels and for the one at hand."""

    def __init__(self, limits: Limits) -> None:
        """Begin with all of it."""
        self._left = limits
        self.share = limits

    def begin_level(self) -> None:
        """Give the level at hand its share."""
        self.share = replace(
            self._left,
            deterministic_seconds=self._left.deterministic_seconds * SHARE_PER_LEVEL,
            wall_seconds=self._left.wall_seconds * SHARE_PER_LEVEL,
        )

    def spend(self, result: Result) -> None:
        """Take what a search has used from the share and from the whole.

        What it used beyond its share is not taken from later levels: no search stops quite when it should.
        """
        within = min(result.deterministic_seconds, self.share.deterministic_seconds)
        self._left = _less(self._left, within, result.wall_seconds)
        self.share = _less(self.share, result.deterministic_seconds, result.wall_seconds)


def _less(limits: Limits, deterministic_seconds: float, wall_seconds: float) -> Limits:
    return replace(
        limits,
        deterministic_seconds=max(0.0, limits.deterministic_seconds - deterministic_seconds),
        wall_seconds=max(0.0, limits.wall_seconds - wall_seconds),
    )
