"""The goals of conversion, for what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hack.bench.compared import OURS
from hack.bench.conversion.restarts import TRIVIAL, Restart
from hack.bench.costs import Key, pairs
from hack.bench.goals import Goal
from hack.bench.machine import Pace

_MOST_CPU_US: Final = 10.0
_MOST_SHARE_PERCENT: Final = 20.0
_MOST_RESTART: Final = 1.2
_LONG: Final = 5000


def one_object_and_many(costs: Mapping[Key, float], pace: Pace) -> Iterator[Goal]:
    """Yield the goals that were measured in process, with the worst value over shapes and directions.

    The goal in µs is reported twice: as measured, and at the pace of the machine on which it was set.
    """
    if alone := [ours for (_, count, _), ours, _ in pairs(costs) if count == 1]:
        name, most = "conversion_of_one_object", _MOST_CPU_US
        yield Goal(name=name, value=max(alone), unit="µs", most=most)
        scaled = max(alone) / pace.slowness
        yield Goal(name=f"{name}_at_reference_pace", value=scaled, unit="µs", most=most)
    if shares := [ours / plain * 100 for (_, count, _), ours, plain in pairs(costs) if count == _LONG]:
        name = f"conversion_of_{_LONG}_share_of_straightforward"
        yield Goal(name=name, value=max(shares), unit="%", most=_MOST_SHARE_PERCENT)


def restart_goals(restarts: Sequence[Restart]) -> Iterator[Goal]:
    """Yield the goal of restarts, if both converters were measured."""
    ours, trivial = (served_seconds(restarts, converter) for converter in (OURS, TRIVIAL))
    if ours and trivial:
        yield Goal(
            name="restart_of_trivial_converter", value=ours / trivial, unit="times", most=_MOST_RESTART
        )


def served_seconds(restarts: Sequence[Restart], converter: str) -> float | None:
    """Return the median time until reads are served with a converter, in seconds; None without restarts."""
    taken = [restart.served_seconds for restart in restarts if restart.converter == converter]
    return statistics.median(taken) if taken else None
