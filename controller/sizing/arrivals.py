"""Estimate the arrival rate of a model's requests from the counters of its engines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from controller.sizing.lengths import total
from controller.sizing.memory import ModelMemory, Retries, Tick
from controller.sizing.records import EngineInterval, SizingSettings

RETRY_SECONDS: Final = 15.0
"""How long clients retry requests that were lost with an engine, in seconds."""


def ticked(
    before: ModelMemory,
    intervals: Mapping[str, EngineInterval],
    *,
    ready: AbstractSet[str],
    now_seconds: float,
    settings: SizingSettings,
) -> tuple[tuple[Tick, ...], Retries | None]:
    """Return the recent ticks, with one for this cycle if any engine counted; `intervals` are by pod.

    Ready replicas without an interval are assumed to serve as much as the others, because Prometheus may have
    new samples of only some of them in each cycle. If a pod is no longer ready or an engine restarted,
    clients retry its unfinished requests elsewhere: for that time, the rate is capped at the one before. The
    second value is the retry state for the next cycle.
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
        # After a capped period follows one tick without the cap, even if another pod leaves in it: pods that
        # leave one after the other, as in a rollout, must not hide a growing load.
        retries = None
    counts = total(intervals.values())
    return (*kept, Tick(moment_seconds=now_seconds, requests_per_second=rate, counts=counts)), retries


def _has_left(before: ModelMemory, intervals: Mapping[str, EngineInterval], ready: AbstractSet[str]) -> bool:
    return bool(before.reporting - ready) or any(item.restarted for item in intervals.values())


def backlog(waiting: int, *, now: float, start_seconds: float, served: float, engines: int) -> float:
    """Return the requests that will still be waiting when replicas that are started now are ready.

    One or two requests in the queue of an engine are no backlog: they wait for the step under way. `served`
    is the number of requests that all ready and starting replicas can serve until then.
    """
    begun = max(0, waiting - 2 * engines)
    return max(0.0, begun + now * start_seconds - served) if begun else 0.0
