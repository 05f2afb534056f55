"""The choice of the rival's setting to compare with: the cheapest one that misses about as little as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hack.bench.decisions.points import Played, mean

WITHIN: Final = 0.001
"""Difference of missed shares that is ignored: 0.1 percentage points."""

_MOST_TRIES: Final = 3


def misses_as_little(rival: Played, ours: Played) -> bool:
    """Tell whether a rival misses at most `WITHIN` more than ours."""
    return rival.missed <= ours.missed + WITHIN


def candidates(rivals: Iterable[Played], ours: Played) -> list[Played]:
    """Return the rivals that miss at most `WITHIN` more than ours, the cheapest first."""
    fitting = [rival for rival in rivals if misses_as_little(rival, ours)]
    return sorted(fitting, key=lambda rival: (rival.cost, rival.policy))


def confirmed(
    rivals: Sequence[Played], ours: Sequence[Played], more: Callable[[str], Sequence[Played]]
) -> Played | None:
    """Return the mean over all seeds of the cheapest rival whose mean misses at most `WITHIN` more than ours.

    `rivals` are results with the first seed, `ours` with all seeds; `more` runs the other seeds with a
    setting. None if no setting misses as little with the first seed, or none of the cheapest three does over
    all seeds.
    """
    whole = mean(ours)
    for rival in candidates(rivals, ours[0])[:_MOST_TRIES]:
        found = mean([rival, *more(rival.policy)])
        if misses_as_little(found, whole):
            return found
    return None


def is_dearer_for_good(course: Sequence[Played], best: Played) -> bool:
    """Tell whether a sweep from few replicas to many may end: the last two cost more than the best, and rise.

    Cost may fall at first, because too few replicas let queues grow, which then request many.
    """
    return len(course) > 1 and course[-1].cost >= course[-2].cost > best.cost
