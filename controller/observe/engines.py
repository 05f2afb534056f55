"""The last words of every engine, and the lengths of the requests it finished of late.

Pure state: readings go in, samples for planning come out. A pod that did not answer keeps its last reading,
which grows old; planning decides what age still means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controller.observe.readings import Reading, Totals
from controller.planning.snapshot import ReplicaSample

LENGTHS_WINDOW_SECONDS: Final = 300.0
"""Requests that finished within this time make the mean lengths."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Mark:
    time_seconds: float
    totals: Totals


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRecord:
    """What is remembered of one engine."""

    reading: Reading
    marks: tuple[_Mark, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRecords:
    """What is remembered of all engines, by namespace and name of the pod."""

    records: Mapping[Key, EngineRecord] = field(default_factory=dict)

    def updated(self, readings: Mapping[Key, Reading], present: frozenset[Key]) -> EngineRecords:
        """Return the records with new readings taken in; pods that are gone are forgotten."""
        kept = {key: record for key, record in self.records.items() if key in present}
        for key, reading in readings.items():
            if key in present:
                kept[key] = _extended(kept.get(key), reading)
        return replace(self, records=kept)

    def sample(self, key: Key, *, now_seconds: float) -> ReplicaSample | None:
        """Return the newest sample of a pod, or None when it never answered or its memory is not known."""
        record = self.records.get(key)
        if record is None or record.reading.kv_tokens is None:
            return None
        reading = record.reading
        prompt, output = _mean_lengths(record)
        return ReplicaSample(
            age_seconds=max(0.0, now_seconds - reading.time_seconds),
            kv_usage=reading.kv_usage,
            waiting=reading.waiting,
            running=reading.running,
            num_gpu_blocks=record.reading.kv_tokens,
            block_size=1,
            avg_input_tokens=prompt,
            avg_output_tokens=output,
        )


def _extended(record: EngineRecord | None, reading: Reading) -> EngineRecord:
    mark = _Mark(reading.time_seconds, reading.totals)
    if record is None or _restarted(record.reading.totals, reading.totals):
        return EngineRecord(reading=reading, marks=(mark,))
    since = reading.time_seconds - LENGTHS_WINDOW_SECONDS
    recent = [item for item in record.marks if item.time_seconds >= since]
    # One mark from before the window stays, so that the difference spans all of it.
    before = [item for item in record.marks if item.time_seconds < since][-1:]
    return EngineRecord(reading=reading, marks=(*before, *recent, mark))


def _restarted(before: Totals, now: Totals) -> bool:
    return now.first_tokens < before.first_tokens or now.finished < before.finished


def _mean_lengths(record: EngineRecord) -> tuple[float | None, float | None]:
    first, last = record.marks[0].totals, record.marks[-1].totals
    prompts, outputs = last.first_tokens - first.first_tokens, last.finished - first.finished
    if prompts == 0 or outputs == 0:
        # Nothing finished within the window: all that ever finished is the best that is known.
        return _mean(last.prompt_tokens, last.first_tokens), _mean(last.generation_tokens, last.finished)
    return (
        _mean(last.prompt_tokens - first.prompt_tokens, prompts),
        _mean(last.generation_tokens - first.generation_tokens, outputs),
    )


def _mean(total: float, count: float) -> float | None:
    return total / count if count > 0 else None
