"""Which setting of a rival stands beside ours: the cheapest of those that miss hardly more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hack.bench.decisions.points import Played, mean

WITHIN: Final = 0.001
"""A tenth of a point of missed requests is taken for nothing."""

_MOST_TRIES: Final = 3


def misses_as_little(rival: Played, ours: Played) -> bool:
    """Tell whether a rival misses at most a tenth of a point more."""
    return rival.missed <= ours.missed + WITHIN


def candidates(rivals: Iterable[Played], ours: Played) -> list[Played]:
    """Return the rivals that miss hardly more than ours, the cheapest first."""
    fitting = [rival for rival in rivals if misses_as_little(rival, ours)]
    return sorted(fitting, key=lambda rival: (rival.cost, rival.policy))


def confirmed(
    rivals: Sequence[Played], ours: Sequence[Played], more: Callable[[str], Sequence[Played]]
) -> Played | None:
    """Return the mean over all seeds of the cheapest rival that misses hardly more, over all seeds.

    `rivals` played the first seed, `ours` all of them; `more` plays the others with a setting. None where no
    setting misses as little, or none of the cheapest few does with every seed.
    """
    whole = mean(ours)
    for rival in candidates(rivals, ours[0])[:_MOST_TRIES]:
        found = mean([rival, *more(rival.policy)])
        if misses_as_little(found, whole):
            return found
    return None


def is_dearer_for_good(course: Sequence[Played], best: Played) -> bool:
    """Tell whether a sweep from few replicas to many may end: its last two cost more than the best, and rise.

    Settings with too few replicas may cost much, too, since what queues asks for many; then cost falls first.
    """
    return len(course) > 1 and course[-1].cost >= course[-2].cost > best.cost
