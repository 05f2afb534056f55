"""The rate at which requests of a model come, from what its engines count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.sizing.lengths import LengthCounts, total
from controller.sizing.memory import ModelMemory, Tick
from controller.sizing.records import EngineInterval, SizingSettings


def ticked(
    before: ModelMemory,
    intervals: Mapping[str, EngineInterval],
    *,
    ready: int,
    now_seconds: float,
    settings: SizingSettings,
) -> tuple[Tick, ...]:
    """Return the recent ticks with that of this cycle, if any engine counted; `intervals` are by pod.

    Ready replicas that did not answer are taken to serve as much as the others. Where a pod left or an engine
    started anew, its unfinished requests come again elsewhere: the rate is then at most the one before.
    """
    since = now_seconds - settings.history_seconds
    kept = tuple([tick for tick in before.ticks if since < tick.moment_seconds < now_seconds])
    if not intervals:
        return kept
    rate = sum([item.arrivals / item.seconds for item in intervals.values()])
    rate *= max(1.0, ready / len(intervals))
    left = before.reporting - intervals.keys()
    if kept and (left or any(item.restarted for item in intervals.values())):
        rate = min(rate, kept[-1].requests_per_second)
    counts = total([counts_of(item) for item in intervals.values()])
    return (*kept, Tick(moment_seconds=now_seconds, requests_per_second=rate, counts=counts))


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
