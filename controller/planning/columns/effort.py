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

ROWS = 50_000
"""The limits are for up to so many times that a model meets a row of slots; what is larger gets more in
proportion, or no core of it would be solved."""


class Effort:
    """What is left of the limits, for all levels and for the one at hand."""

    def __init__(self, limits: Limits, *, models: int, rows: int, deadline_seconds: float) -> None:
        """Begin with all of it, and more for many models that share many rows of slots.

        The deadline, by the monotonic clock, is a net.
        """
        times = max(1.0, models * rows / ROWS)
        self._left = replace(limits, deterministic_seconds=times * limits.deterministic_seconds)
        self._deadline_seconds = deadline_seconds
        self._is_cut = False
        self.share = limits

    @property
    def is_left(self) -> bool:
        """Whether the level at hand may be searched any further."""
        return self.share.deterministic_seconds > 0 and self.share.wall_seconds > 0

    @property
    def is_cut_by_clock(self) -> bool:
        """Whether time has ever run out, so that another machine might have done more."""
        return self._is_cut or monotonic() >= self._deadline_seconds

    def begin(self, share: float = SHARE_PER_LEVEL) -> None:
        """Give what is at hand, by default a level, its share of what is left."""
        self.share = replace(
            self._left,
            deterministic_seconds=self._left.deterministic_seconds * share,
            wall_seconds=max(0.0, self._deadline_seconds - monotonic()) * share,
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
        self._is_cut |= self.share.wall_seconds <= 0
