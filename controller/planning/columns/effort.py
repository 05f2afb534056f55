"""What effort is left, and how much of it one level may take."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.planning.columns.program import Result
    from controller.planning.lexicographic import Limits

SHARE_PER_LEVEL = 0.5
"""Of the effort that is left."""


class Effort:
    """What is left of the limits, for all levels and for the one at hand."""

    def __init__(self, limits: Limits, *, deadline_seconds: float) -> None:
        """Begin with all of it. The deadline is by the monotonic clock: a safety net."""
        self._left = limits
        self._deadline_seconds = deadline_seconds
        self.share = limits

    @property
    def is_left(self) -> bool:
        """Whether the level at hand may be searched any further."""
        return self.share.deterministic_seconds > 0 and self.share.wall_seconds > 0

    def begin_level(self) -> None:
        """Give the level at hand its share."""
        self.share = replace(
            self._left,
            deterministic_seconds=self._left.deterministic_seconds * SHARE_PER_LEVEL,
            wall_seconds=max(0.0, self._deadline_seconds - monotonic()) * SHARE_PER_LEVEL,
        )

    def spend(self, result: Result) -> None:
        """Take what a search has used from the share and from the whole.

        What it used beyond its share is not taken from later levels: no search stops quite when it should.
        """
        within = min(result.deterministic_seconds, self.share.deterministic_seconds)
        self._left = replace(
            self._left, deterministic_seconds=max(0.0, self._left.deterministic_seconds - within)
        )
        self.share = replace(
            self.share,
            deterministic_seconds=max(0.0, self.share.deterministic_seconds - result.deterministic_seconds),
            wall_seconds=max(0.0, self.share.wall_seconds - result.wall_seconds),
        )
