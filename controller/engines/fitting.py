"""Fit the step times of engines to what they counted over some time, by the code of the controller itself."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Final

from controller.engines.exposition import INSTANCE, NAMES, UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.prometheus_history import Course
from controller.engines.readings import Reading, reading_of
from controller.engines.records import EngineRecords
from controller.sizing.lengths import Lengths, lengths_of, total
from controller.sizing.records import EngineInterval, StepParameters
from controller.sizing.step_time import (
    ENOUGH_SAMPLES,
    NO_TIMES,
    TYPICAL,
    IntervalSample,
    Prior,
    fit,
    sample_of,
)

COUNTED: Final = tuple(name for name in NAMES if not name.endswith("_bucket"))
"""The series from which step times and lengths follow."""

_SPACING_SECONDS: Final = 14.0
"""Least time between two scrapes that are used: about the cycle of the controller."""

_LONGEST_SECONDS: Final = 600.0
"""Time between two readings beyond which nothing is learned from them: load varies meanwhile."""

_LITTLE_VARIATION: Final = 0.1
"""Standard deviation of the batch, relative to its mean, below which its effect cannot be told."""

_FEW_PROMPTS: Final = 1.0
"""Prompt tokens per second below which their effect cannot be told."""

_ENGINE: Final = ("engine", "engine")


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineMeasurement:
    """What engines with the same model and accelerator showed."""

    parameters: StepParameters | None = None
    """None if nothing can be told about step times."""

    samples: float = 0.0
    """Weight: the intervals in which an engine was busy."""

    kv_tokens: int | None = None
    """Size of the KV cache of one engine; None if it is not reported."""

    lengths: Lengths | None = None
    engines: int = 0
    """The number of replicas whose engines were read."""

    seconds: float = 0.0
    """The time over which they were read."""

    doubts: tuple[str, ...] = ()
    """What cannot be told, or hardly, in sentences."""


def measure(readings: Iterable[Sequence[Reading]], *, prior: Prior = TYPICAL) -> EngineMeasurement:
    """Return what engines showed, from the readings of each in order. The prior is that of the ratios."""
    every = [items for items in readings if items]
    intervals = [item for items in every for item in _intervals(items)]
    if not every:
        return EngineMeasurement(doubts=("no engine of vLLM or SGLang was read",))
    lengths = lengths_of(total([item for _, item in intervals]), None)
    samples = [
        sample
        for engines, item in intervals
        if (sample := sample_of(item, lengths=lengths, engines=engines)) is not None
    ]
    times = NO_TIMES
    for sample in samples:
        times = times.add(sample)  # all of them are of interest, and none is forgotten
    sizes = [item.kv_tokens // item.engines for items in every for item in items if item.kv_tokens]
    return EngineMeasurement(
        parameters=fit(times, prior) if times.samples else None,
        samples=sum([item.weight for item in samples]),
        kv_tokens=min(sizes, default=None),
        lengths=lengths,
        engines=len(every),
        seconds=max(items[-1].time_seconds for items in every)
        - min(items[0].time_seconds for items in every),
        doubts=tuple(_doubts(samples, [item for _, item in intervals], lengths, sizes)),
    )


def _intervals(readings: Sequence[Reading]) -> Iterator[tuple[int, EngineInterval]]:
    """Yield what one replica counted between two readings, with its number of engines."""
    for before, now in pairwise(readings):
        if now.time_seconds - before.time_seconds > _LONGEST_SECONDS:
            continue
        records = EngineRecords()
        for item in (before, now):
            records = records.update(
                {_ENGINE: item}, [_ENGINE], scraped_keys=[_ENGINE], now_seconds=item.time_seconds
            )
        if (interval := records.records[_ENGINE].interval) is not None:
            yield now.engines, interval


def _doubts(
    samples: Sequence[IntervalSample],
    intervals: Sequence[EngineInterval],
    lengths: Lengths | None,
    sizes: Sequence[int],
) -> Iterator[str]:
    """Yield what cannot be told, or hardly."""
    weight = sum([item.weight for item in samples])
    if not intervals:
        yield "no engine was read twice within ten minutes: step times cannot be told"
    elif not weight:
        yield "no engine had a request with several tokens: step times cannot be told"
    elif weight < ENOUGH_SAMPLES:
        yield (
            f"engines were busy for {weight:.1f} intervals, of the {ENOUGH_SAMPLES:.0f} that are required:"
            " there was too little load, or too little time, to trust the step times"
        )
    if weight:
        batches = [item.sequences for item in samples if item.weight > _LITTLE_VARIATION]
        if len(batches) < 2 or pstdev(batches) < _LITTLE_VARIATION * fmean(batches):  # noqa: PLR2004 (a deviation)
            most = max(batches, default=0.0)
            yield f"the batch hardly varied (at most {most:.1f}): the ratio of beta to alpha is assumed"
        if fmean([item.prompted for item in samples]) < _FEW_PROMPTS:
            yield "hardly any prompt was computed: the ratio of delta to alpha is assumed"
        if not any(item.steps for item in intervals):
            yield "the engine does not count its steps: times between tokens stand for them"
    if lengths is None:
        yield "no request began and ended meanwhile: lengths cannot be told"
    if not sizes:
        yield "the engine does not report the size of its KV cache"


def readings_over_time(courses: Sequence[Course]) -> tuple[list[list[Reading]], tuple[str, ...]]:
    """Return the readings of each engine that a Prometheus scraped, and why some were not readable.

    Engines are told apart by namespace, pod and address. If several jobs scrape one pod, the one with most
    samples counts.
    """
    by_pod: dict[tuple[str, ...], dict[str, dict[str, list[Course]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for item in courses:
        labels = item.labels
        pod = tuple(labels.get(name, "") for name in ("namespace", "pod"))
        by_pod[pod][labels.get("job", "")][labels.get(INSTANCE, "")].append(item)
    readings, problems = [], []
    for jobs in by_pod.values():
        chosen = max(jobs.values(), key=_points)
        for series in chosen.values():
            own, problem = _readings(series)
            if own:
                readings.append(own)
            elif problem:
                problems.append(problem)
    return readings, tuple(dict.fromkeys(problems))


def _points(instances: Mapping[str, Sequence[Course]]) -> int:
    return sum(len(item.points) for series in instances.values() for item in series)


def _readings(courses: Sequence[Course]) -> tuple[list[Reading], str]:
    scrapes: dict[float, list[Series]] = defaultdict(list)
    for item in courses:
        for seconds, value in item.points:
            scrapes[seconds].append(
                Series(name=item.labels.get("__name__", ""), labels=item.labels, value=value)
            )
    readings, problem, last = [], "", -math.inf
    for seconds in sorted(scrapes):
        if seconds - last < _SPACING_SECONDS:
            continue
        try:
            reading = reading_of(scrapes[seconds], time_seconds=seconds)
        except UnreadableMetricsError as error:
            problem = str(error)
            continue
        readings.append(reading)
        last = seconds
    return readings, problem


def selector(names: Sequence[str], *, namespace: str = "", pods: str = "") -> str:
    """Return a selector of some series of engines; `pods` is a regular expression."""
    matchers = [f'__name__=~"{"|".join(names)}"']
    if namespace:
        matchers.append(f"namespace={quote(namespace)}")
    if pods:
        matchers.append(f"pod=~{quote(pods)}")
    return f"{{{','.join(matchers)}}}"


def quote(text: str) -> str:
    """Return a text as a string in PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
