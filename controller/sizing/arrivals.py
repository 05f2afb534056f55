"""The rate at which requests of a model come, from what its engines count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from controller.sizing.lengths import LengthCounts, total
from controller.sizing.memory import ModelMemory, Retries, Tick
from controller.sizing.records import EngineInterval, SizingSettings

RETRY_SECONDS: Final = 15.0
"""How long clients ask again for what they had asked an engine that is gone."""


def ticked(
    before: ModelMemory,
    intervals: Mapping[str, EngineInterval],
    *,
    ready: AbstractSet[str],
    now_seconds: float,
    settings: SizingSettings,
) -> tuple[tuple[Tick, ...], Retries | None]:
    """Return the recent ticks with that of this cycle, if any engine counted; `intervals` are by pod.

    Ready replicas without an interval are taken to serve as much as the others: Prometheus has new samples of
    some in each cycle. Where a pod is not ready any more or an engine started anew, its unfinished requests
    come again elsewhere: for as long as they do, the rate is at most the one before. The second value is for
    the next cycle.
    """
    since = now_seconds - settings.history_seconds
    kept = tuple([tick for tick in before.ticks if since < tick.moment_seconds < now_seconds])
    if not intervals:
        return kept, before.retries
    rate = sum([item.arrivals / item.seconds for item in intervals.values()])
    rate *= max(1.0, len(ready) / len(intervals))
    retries = before.retries
    if retries is None and kept and _has_left(before, intervals, ready):
        ticks = math.ceil(RETRY_SECONDS / settings.interval_seconds)
        retries = Retries(ticks=ticks, most=kept[-1].requests_per_second)
    if retries is not None and retries.ticks:
        rate = min(rate, retries.most)
        retries = replace(retries, ticks=retries.ticks - 1)
    else:
        # A tick without the cap, whoever leaves in it: pods that go one after the other, as in a rollout,
        # must not hide that the load grows.
        retries = None
    counts = total([counts_of(item) for item in intervals.values()])
    return (*kept, Tick(moment_seconds=now_seconds, requests_per_second=rate, counts=counts)), retries


def _has_left(before: ModelMemory, intervals: Mapping[str, EngineInterval], ready: AbstractSet[str]) -> bool:
    return bool(before.reporting - ready) or any(item.restarted for item in intervals.values())


def counts_of(interval: EngineInterval) -> LengthCounts:
    """Return what an interval tells of the lengths of requests."""
    return LengthCounts(
        first_tokens=interval.first_tokens,
        prompt_tokens=interval.prompt_tokens,
        computed_prompt_tokens=interval.computed_prompt_tokens,
        generation_tokens=interval.generation_tokens,
        finished=interval.finished,
        prompt_lengths=interval.prompt_lengths,
    )


def backlog(waiting: int, *, now: float, start_seconds: float, served: float, engines: int) -> float:
    """Return the requests that will still wait once what is started now is ready.

    A request or two in the queue of an engine are no backlog: they wait for the step under way. `served` is
    what all replicas that are ready or coming can serve until then.
    """
    begun = max(0, waiting - 2 * engines)
    return max(0.0, begun + now * start_seconds - served) if begun else 0.0


def rates(ticks: Sequence[Tick]) -> list[tuple[float, float]]:
    """Return (moment, requests per second) of each tick."""
    return [(tick.moment_seconds, tick.requests_per_second) for tick in ticks]
