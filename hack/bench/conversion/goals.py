"""The goals of conversion."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hack.bench.compared import OURS
from hack.bench.conversion.restarts import TRIVIAL, Restart
from hack.bench.costs import Key, pairs
from hack.bench.goals import Goal, at_both_paces
from hack.bench.machine import Pace

_MOST_CPU_US: Final = 25.0
_MOST_SHARE_PERCENT: Final = 50.0
_MOST_RESTART: Final = 1.2
_LONG: Final = 5000


def one_object_and_many(costs: Mapping[Key, float], pace: Pace) -> Iterator[Goal]:
    """Yield the goals of handlers, with the worst value over shapes and directions."""
    alone = max(ours for (_, count, _), ours, _ in pairs(costs) if count == 1)
    goal = Goal(name="conversion_of_one_object", value=alone, unit="µs", most=_MOST_CPU_US)
    yield from at_both_paces(goal, pace.slowness)
    share = max(ours / plain * 100 for (_, count, _), ours, plain in pairs(costs) if count == _LONG)
    name = f"conversion_of_{_LONG}_share_of_straightforward"
    yield Goal(name=name, value=share, unit="%", most=_MOST_SHARE_PERCENT)


def restart_goal(restarts: Sequence[Restart]) -> Goal:
    """Return the goal of the median time until reads are served, relative to the trivial converter."""
    ours, trivial = (
        statistics.median(one.served_seconds for one in restarts if one.converter == converter)
        for converter in (OURS, TRIVIAL)
    )
    name = "restart_of_trivial_converter"
    return Goal(name=name, value=ours / trivial, unit="times", most=_MOST_RESTART)
