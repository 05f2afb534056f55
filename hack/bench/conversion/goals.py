"""The goals of conversion, as far as they were measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.conversion.cases import Key
from hack.bench.conversion.restarts import TRIVIAL, Restart
from hack.bench.goals import Goal
from hack.bench.pace import Pace

_MOST_CPU_US: Final = 10.0
_MOST_SHARE_PERCENT: Final = 20.0
_MOST_RESTART: Final = 1.2
_LONG: Final = 5000


def goals(in_process: Mapping[Key, float], restarts: Sequence[Restart], pace: Pace) -> list[Goal]:
    """Return the goals that were measured; of several shapes and directions the worst counts.

    The goal in microseconds comes twice: as measured, and at the pace of the machine that it was set on.
    """
    return [*_one_object(in_process, pace), *_many(in_process), *_restart(restarts)]


def _one_object(costs: Mapping[Key, float], pace: Pace) -> Iterator[Goal]:
    alone = [spent for (_, count, _, server), spent in costs.items() if count == 1 and server == OURS]
    if not alone:
        return
    yield Goal(name="conversion_of_one_object", value=max(alone), unit="µs", most=_MOST_CPU_US)
    scaled = max(alone) / pace.slowness
    yield Goal(name="conversion_of_one_object_at_reference_pace", value=scaled, unit="µs", most=_MOST_CPU_US)


def _many(costs: Mapping[Key, float]) -> Iterator[Goal]:
    shares = [
        spent / costs[name, count, direction, STRAIGHTFORWARD] * 100
        for (name, count, direction, server), spent in costs.items()
        if count == _LONG and server == OURS
    ]
    if shares:
        name = f"conversion_of_{_LONG}_share_of_straightforward"
        yield Goal(name=name, value=max(shares), unit="%", most=_MOST_SHARE_PERCENT)


def _restart(restarts: Sequence[Restart]) -> Iterator[Goal]:
    ours, trivial = (served_seconds(restarts, converter) for converter in (OURS, TRIVIAL))
    if ours and trivial:
        yield Goal(
            name="restart_of_trivial_converter", value=ours / trivial, unit="times", most=_MOST_RESTART
        )


def served_seconds(restarts: Sequence[Restart], converter: str) -> float | None:
    """Return the median time until reads were served with a converter; None without restarts."""
    taken = [restart.served_seconds for restart in restarts if restart.converter == converter]
    return statistics.median(taken) if taken else None
