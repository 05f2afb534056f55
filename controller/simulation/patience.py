"""The requests of an engine whose clients give up unless they get a first token in time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.simulation.sequence import Sequence


class Patience:
    """Sequences by the time at which their clients give up; those with a first token are skipped."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int, Sequence]] = []

    def add(self, sequence: Sequence, end_us: int) -> None:
        """Add a sequence whose client gives up at `end_us`; request IDs are unique."""
        heappush(self._ends, (end_us, sequence.request.request_id, sequence))

    def next_us(self) -> int | None:
        """Return when the next client gives up, or None if no client will."""
        ends = self._ends
        while ends and ends[0][2].first_token_us is not None:
            heappop(ends)
        return ends[0][0] if ends else None

    def pop_ended(self, now_us: int) -> list[Sequence]:
        """Remove and return the sequences whose clients have given up by now."""
        ended = []
        while (end_us := self.next_us()) is not None and end_us <= now_us:
            ended.append(heappop(self._ends)[2])
        return ended
