"""Compute the load of one model, and the capacity that it requires."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from controller.planning.load import MOST_RATE, MOST_REQUESTS, MOST_TOKENS, ModelLoad, Signal
from controller.planning.snapshot import Variant
from controller.sizing.arrivals import backlog, ticked
from controller.sizing.forecast import Forecast, forecast
from controller.sizing.lengths import lengths_of, total
from controller.sizing.memory import ModelMemory
from controller.sizing.records import Key, Reports, SizingSettings
from controller.sizing.trust import Grade, grade

SYNC_SECONDS: Final = 15.0
"""Sync period of a HorizontalPodAutoscaler, in seconds."""

LEAST_AHEAD_CYCLES: Final = 8
"""Minimum forecast horizon in cycles, like the history that limits how far a line can be extrapolated: 120 s
at the default interval. Bursts are shorter than a cycle and a sync can follow, and the error of a forecast
for the next moment does not cover them.
"""

RELEASE_DEVIATIONS: Final = 1.0
"""Additional standard deviations for releasing capacity, so that noise does not reverse a decision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observed:
    """The observation of one model in one cycle, before its capacity is known."""

    memory: ModelMemory
    grade: Grade
    waiting: int
    engines: int
    """Number of ready replicas."""


def observed(
    variants: Sequence[Variant],
    reports: Reports,
    before: ModelMemory,
    *,
    now_seconds: float,
    settings: SizingSettings,
) -> Observed:
    """Return the combined observation of a model's engines, with its updated memory."""
    ready = [(variant.namespace, pod.name) for variant in variants for pod in variant.replicas if pod.ready]
    answers = {key: reports[key] for key in ready if key in reports}
    graded = grade(
        [answers[key].age_seconds if key in answers else None for key in ready],
        silent_since_seconds=before.silent_since_seconds,
        now_seconds=now_seconds,
        settings=settings,
    )
    intervals = {key[1]: report.interval for key, report in answers.items() if report.interval}
    names = {name for _, name in ready}
    ticks, retries = ticked(before, intervals, ready=names, now_seconds=now_seconds, settings=settings)
    memory = ModelMemory(
        ticks=ticks,
        lengths=lengths_of(total([tick.counts for tick in ticks]), before.lengths),
        reporting=frozenset((before.reporting & names) | intervals.keys()),
        retries=retries,
        silent_since_seconds=graded.silent_since_seconds,
    )
    usable = [report for report in answers.values() if report.age_seconds <= settings.held_seconds]
    return Observed(
        memory=memory, grade=graded, waiting=sum([report.waiting for report in usable]), engines=len(ready)
    )


def load_of(
    key: Key,
    seen: Observed,
    variants: Sequence[Variant],
    settings: SizingSettings,
) -> ModelLoad:
    """Return the load of a model whose variants have their capacities and start-up times."""
    running = [variant for variant in variants if variant.current_replicas] or variants
    start = max([variant.start_seconds for variant in running])
    lengths, ticks = seen.memory.lengths, seen.memory.ticks
    signal = seen.grade.signal if ticks else Signal.UNKNOWN
    load = partial(
        ModelLoad,
        namespace=key[0],
        model_id=key[1],
        signal=signal,
        signal_age_seconds=seen.grade.age_seconds,
        ready_replicas=seen.engines,
        silent_replicas=seen.grade.silent_replicas,
        start_seconds=start,
        prompt_tokens=min(MOST_TOKENS, lengths.prompt) if lengths else None,
        output_tokens=min(MOST_TOKENS, lengths.output) if lengths else None,
    )
    if signal is Signal.UNKNOWN:
        return load()
    trend = forecast(
        [(tick.moment_seconds, tick.requests_per_second) for tick in ticks],
        ahead_seconds=max(
            LEAST_AHEAD_CYCLES * settings.interval_seconds, start + settings.interval_seconds + SYNC_SECONDS
        ),
        history_seconds=settings.history_seconds,
        deviations=settings.deviations,
        release_deviations=settings.deviations + RELEASE_DEVIATIONS,
    )
    horizon = start + settings.interval_seconds
    left = backlog(
        seen.waiting,
        now=trend.now,
        start_seconds=horizon,
        served=_served(variants, horizon),
        engines=seen.engines,
    )
    return _for(trend, min(MOST_REQUESTS, left), load, settings)


def _for(
    trend: Forecast, backlog_requests: float, load: Callable[..., ModelLoad], settings: SizingSettings
) -> ModelLoad:
    """Return the load, completed with its rates and the capacity it requires.

    It is enough for the forecast at the target utilization, and to work off a backlog in time.
    """
    drained = trend.now + backlog_requests / settings.drain_seconds
    required = max(trend.upper / settings.target_utilization, drained)
    releasable = max(required, trend.release / settings.target_utilization)
    return load(
        backlog_requests=backlog_requests,
        requests_per_second=min(MOST_RATE, trend.now),
        upper_requests_per_second=min(MOST_RATE, trend.upper),
        required_requests_per_second=min(MOST_RATE, required),
        releasable_requests_per_second=None if math.isinf(releasable) else min(MOST_RATE, releasable),
    )


def _served(variants: Sequence[Variant], seconds: float) -> float:
    """Return the requests that ready replicas serve within a time, and starting ones within half of it."""
    whole = 0.0
    for variant in variants:
        if variant.capacity is not None:
            ready = min(variant.ready_replicas, variant.current_replicas)
            coming = max(0, variant.current_replicas - ready - variant.stalled_replicas)
            whole += variant.capacity.requests_per_second * (ready + coming / 2) * seconds
    return whole
