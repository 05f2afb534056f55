"""The goals of placement, for what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from hack.bench.compared import OURS
from hack.bench.goals import Goal
from hack.bench.placement.comparison import Standing, comparisons, disproved
from hack.bench.placement.engines import STRATEGIES
from hack.bench.placement.result import EngineResult
from hack.fleets.catalogue import BY_ROOM, RIPPLES, RULED, SCARCE

_GAP_PERCENT: Final = 0.1
_LARGE, _LARGEST = 2000, 10_000
_RIPPLE_MS: Final = {500: 30.0, 2000: 100.0, 10_000: 500.0}
SMALL: Final = 100
_SMALL_SECONDS: Final = 0.3
_GROUPS: Final = {f"T6_{{}}_of_at_most_{SMALL}": BY_ROOM, f"T6_{{}}_of_at_most_{SMALL}_with_rules": RULED}
"""The goal applies to fleets that only room limits; those whose pods have rules are reported separately."""


def goals(results: Sequence[EngineResult], *, slowness: float) -> list[Goal]:
    """Return the goals that were measured, with times at the pace of the machine on which they were set.

    T1 and T2 apply to large fleets in scarcity, T5 to small changes, T8 to proofs, T9 to equal answers; goals
    without a number must never be missed.
    """
    answered = [result for result in results if result.levels]
    ours = [result for result in answered if result.engine == OURS]
    lost = sum(result.engine == OURS and bool(result.failure) for result in results)
    answers = Goal(name="without_an_answer", value=lost, unit="instances", most=0)
    if not ours:
        return [answers] if lost else []
    return [
        *_scarce(ours, _LARGE, slowness, name="T1", cpu_seconds=1.5),
        *_scarce(ours, _LARGEST, slowness, name="T2", cpu_seconds=3.0),
        *_ripples(ours, slowness),
        *_proofs(ours, slowness),
        *_determinism(ours),
        *_gates(answered),
        answers,
    ]


def _scarce(
    ours: Sequence[EngineResult], size: int, slowness: float, *, name: str, cpu_seconds: float
) -> Iterator[Goal]:
    """Yield the CPU time, gap and memory for families in which accelerator types are scarce."""
    here = _of(ours, size, lambda result: result.instance.family in SCARCE)
    spent = [seconds / slowness for result in here for seconds in result.cpu_seconds]
    if not spent:
        return
    p95 = float(np.percentile(spent, 95, method="inverted_cdf"))
    yield Goal(name=f"{name}_cpu_p95_of_{size}", value=p95, unit="s", most=cpu_seconds)
    gaps = [result.worst_gap_percent for result in here if result.worst_gap_percent is not None]
    if gaps:
        yield Goal(name=f"{name}_gap_of_{size}", value=max(gaps), unit="%", most=_GAP_PERCENT)
    if size == _LARGEST:
        peak = max(result.peak_mb for result in here)
        yield Goal(name=f"{name}_memory_of_{size}", value=peak, unit="MB", most=400.0)


def _ripples(ours: Sequence[EngineResult], slowness: float) -> Iterator[Goal]:
    """Yield the CPU time after a change of one model of a hundred, without the first solve."""
    for size, most in _RIPPLE_MS.items():
        here = _of(ours, size, lambda result: result.instance.family == RIPPLES)
        spent = [seconds for result in here for seconds in result.cpu_seconds[1:]]
        if spent:
            value = statistics.median(spent) * 1000 / slowness
            yield Goal(name=f"T5_cpu_of_a_change_in_{size}", value=value, unit="ms", most=most)


def _proofs(ours: Sequence[EngineResult], slowness: float) -> Iterator[Goal]:
    """Yield the largest proven gap, the CPU time of the slowest proof, and the share without one."""
    here = _of(ours, _LARGE, lambda result: result.steps == 1)
    proven = [result for result in here if result.worst_gap_percent is not None]
    if proven:
        gap = max(result.worst_gap_percent or 0.0 for result in proven)
        yield Goal(name=f"T8_gap_of_{_LARGE}", value=gap, unit="%", most=0.5)
        spent = max(statistics.median(result.cpu_seconds) for result in proven) / slowness
        yield Goal(name=f"T8_cpu_of_proof_of_{_LARGE}", value=spent, unit="s", most=5.0)
    if here:
        share = 100 * (len(here) - len(proven)) / len(here)
        yield Goal(name=f"T8_without_proof_of_{_LARGE}", value=share, unit="%", most=0.0)


def _determinism(ours: Sequence[EngineResult]) -> Iterator[Goal]:
    repeated = [result for result in ours if len(result.plans) > 1]
    if repeated:
        most = max(len(set(result.plans)) for result in repeated)
        yield Goal(name="T9_different_answers_to_the_same", value=most, unit="answers", most=1)


def _gates(answered: Sequence[EngineResult]) -> Iterator[Goal]:
    """Yield counts that must be 0: infeasible answers, disproved bounds, answers worse than a strategy's."""
    ours = [result for result in answered if result.engine == OURS]
    yield Goal(
        name="impossible_answers", value=sum(bool(one.wrong) for one in ours), unit="instances", most=0
    )
    yield Goal(name="bounds_disproved", value=len(disproved(answered)), unit="bounds", most=0)
    lost = {
        comparison.other.instance
        for comparison in comparisons(answered)
        if comparison.other.engine in STRATEGIES
        and comparison.standing is Standing.LOSS
        and comparison.other.steps == 1
    }
    yield Goal(name="worse_than_a_strategy", value=len(lost), unit="instances", most=0)


def _of(
    results: Sequence[EngineResult], size: int, wanted: Callable[[EngineResult], bool]
) -> list[EngineResult]:
    return [result for result in results if result.instance.size == size and wanted(result)]


def small_goals(results: Sequence[EngineResult], *, slowness: float) -> Iterator[Goal]:
    """Yield the CPU time of the slowest small fleet, and the share of fleets not proven optimal."""
    for name, families in _GROUPS.items():
        here = [one for one in small(results) if one.instance.family in families]
        if here:
            spent = max(map(cpu_seconds, here)) / slowness
            yield Goal(name=name.format("cpu"), value=spent, unit="s", most=_SMALL_SECONDS)
            share = 100 * sum(not is_best(one) for one in here) / len(here)
            yield Goal(name=name.format("not_proven_optimal"), value=share, unit="%", most=0.0)


def small(results: Sequence[EngineResult]) -> list[EngineResult]:
    """Return our results for small fleets, without sequences."""
    return [
        one
        for one in results
        if one.engine == OURS and one.levels and one.instance.size <= SMALL and one.steps == 1
    ]


def cpu_seconds(one: EngineResult) -> float:
    """Return the median CPU time of its solves."""
    return statistics.median(one.cpu_seconds)


def is_best(one: EngineResult) -> bool:
    """Tell whether its answer is proven optimal at every level that has a bound."""
    return one.worst_gap_percent == 0
