"""Compute the load of one model, the capacity that it requires, and how reliable the data about it is.

Reliability depends on the age of engine reports and on how many engines report. Missing data never counts as
zero and never scales down. However, one silent engine among many must not block scaling forever: after a
timeout the reporting ones decide, if they form a quorum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.kinds.identity import Key
from controller.planning.load import MOST_RATE, MOST_REQUESTS, MOST_TOKENS, ModelLoad, Signal
from controller.planning.snapshot import Variant
from controller.sizing.arrivals import forecast, with_tick
from controller.sizing.lengths import lengths_of, total
from controller.sizing.memory import ModelMemory
from controller.sizing.records import Reports, SizingSettings

_QUEUED_PER_ENGINE: Final = 2
"""Requests in the queue of an engine that wait for the step under way, and are no backlog."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelObservation:
    """The observation of one model in one cycle, before its capacity is known."""

    memory: ModelMemory
    grade: Grade
    waiting: int
    engines: int
    """Number of ready replicas."""


def observe_model(
    variants: Sequence[Variant],
    reports: Reports,
    before: ModelMemory,
    *,
    now_seconds: float,
    settings: SizingSettings,
) -> ModelObservation:
    """Return the combined observation of a model's engines, with its updated memory."""
    ready = [(variant.namespace, pod.name) for variant in variants for pod in variant.replicas if pod.ready]
    answers = {key: reports[key] for key in ready if key in reports}
    graded = grade(
        [answers[key].age_seconds if key in answers else None for key in ready],
        silent_since_seconds=before.silent_since_seconds,
        now_seconds=now_seconds,
        settings=settings,
    )
    by_pod = {key[1]: report for key, report in answers.items()}
    ticks = with_tick(
        before, by_pod, ready={name for _, name in ready}, now_seconds=now_seconds, settings=settings
    )
    if not ready and ticks:
        # The model lost its last replica, for example to a higher priority. Its load is what it was last.
        graded = replace(graded, signal=Signal.HELD, age_seconds=now_seconds - ticks[-1].moment_seconds)
    memory = replace(
        before,
        ticks=ticks,
        lengths=lengths_of(total([tick.counts for tick in ticks]), before.lengths),
        silent_since_seconds=graded.silent_since_seconds,
    )
    usable = [report for report in answers.values() if report.age_seconds <= settings.held_seconds]
    return ModelObservation(
        memory=memory, grade=graded, waiting=sum([report.waiting for report in usable]), engines=len(ready)
    )


def load_of(
    key: Key,
    seen: ModelObservation,
    variants: Sequence[Variant],
    settings: SizingSettings,
    *,
    most_required: float = math.inf,
) -> tuple[ModelLoad, ModelMemory]:
    """Return the load of a model whose variants have their capacities and start-up times, and its memory.

    The capacity that must exist is enough for the forecast, and to work off waiting requests within a start,
    but at most `most_required`. The most that was required within the hold may not be removed: a replica that
    was just needed is soon needed again, and starting it takes minutes.
    """
    running = [variant for variant in variants if variant.current_replicas] or variants
    lengths, ticks, memory = seen.memory.lengths, seen.memory.ticks, seen.memory
    load = ModelLoad(
        namespace=key[0],
        model_id=key[1],
        signal=seen.grade.signal if ticks else Signal.UNKNOWN,
        signal_age_seconds=seen.grade.age_seconds,
        ready_replicas=seen.engines,
        silent_replicas=seen.grade.silent_replicas,
        start_seconds=max([variant.start_seconds for variant in running]),
        prompt_tokens=min(MOST_TOKENS, lengths.prompt) if lengths else None,
        output_tokens=min(MOST_TOKENS, lengths.output) if lengths else None,
    )
    if load.signal is Signal.UNKNOWN:
        return load, memory
    expected = forecast([tick.requests_per_second for tick in ticks])
    backlog = float(max(0, seen.waiting - _QUEUED_PER_ENGINE * seen.engines))
    # Pods without a probe may be ready after 0 s: a backlog is then worked off within a cycle.
    work_off_seconds = max(settings.interval_seconds, load.start_seconds)
    required = min(max(expected.upper, expected.now + backlog / work_off_seconds), most_required)
    now_seconds = ticks[-1].moment_seconds
    since = now_seconds - settings.hold_seconds
    before = [item for item in memory.required if since < item[0] < now_seconds]
    held = (*before, (now_seconds, required))
    begun = memory.begun_seconds if memory.begun_seconds is not None else now_seconds
    # What was required before the first cycle is not known, so nothing is removed within the first hold.
    releasable = max([rate for _, rate in held]) if begun <= since else None
    load = replace(
        load,
        backlog_requests=min(MOST_REQUESTS, backlog),
        requests_per_second=min(MOST_RATE, expected.now),
        upper_requests_per_second=min(MOST_RATE, expected.upper),
        required_requests_per_second=min(MOST_RATE, required),
        releasable_requests_per_second=None if releasable is None else min(MOST_RATE, releasable),
        is_growing=bool(before) and required > max([rate for _, rate in before]),
    )
    return load, replace(memory, required=held, begun_seconds=begun)


def joint_load(own: ModelLoad, loads: Sequence[ModelLoad]) -> ModelLoad:
    """Return a load with the highest rates among some loads of the same requests."""
    now = [load.requests_per_second for load in loads if load.requests_per_second is not None]
    releasable = [load.releasable_requests_per_second for load in loads]
    known = [rate for rate in releasable if rate is not None]
    return replace(
        own,
        requests_per_second=max(now, default=None),
        upper_requests_per_second=max([load.upper_requests_per_second for load in loads]),
        required_requests_per_second=max([load.required_requests_per_second for load in loads]),
        releasable_requests_per_second=max(known) if len(known) == len(loads) else None,
        is_growing=any(load.is_growing for load in loads),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """The grade of one model's reports."""

    signal: Signal
    age_seconds: float | None
    """Age of the oldest report that counts, in seconds; None without one."""

    silent_replicas: int
    """Ready replicas whose reports do not count."""

    silent_since_seconds: float | None
    """Time since which some replicas have been silent, in seconds; None if all report."""


def grade(
    ages_seconds: Sequence[float | None],
    *,
    silent_since_seconds: float | None,
    now_seconds: float,
    settings: SizingSettings,
) -> Grade:
    """Return the grade from the age of each ready replica's report; None for a replica without one."""
    usable = [age for age in ages_seconds if age is not None and age <= settings.held_seconds]
    fresh = [age for age in usable if age <= settings.fresh_seconds]
    if len(fresh) == len(ages_seconds):
        signal = Signal.FRESH if fresh else Signal.UNKNOWN
        return Grade(
            signal=signal, age_seconds=max(fresh, default=None), silent_replicas=0, silent_since_seconds=None
        )
    since = now_seconds if silent_since_seconds is None else min(silent_since_seconds, now_seconds)
    if now_seconds - since > settings.held_seconds and len(fresh) >= settings.quorum * len(ages_seconds):
        signal, counted = Signal.QUORUM, fresh
    else:
        signal, counted = Signal.HELD if usable else Signal.UNKNOWN, usable
    return Grade(
        signal=signal,
        age_seconds=max(counted, default=None),
        silent_replicas=len(ages_seconds) - len(counted),
        silent_since_seconds=since,
    )
