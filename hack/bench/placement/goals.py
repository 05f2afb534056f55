"""The goals of placement, for what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from hack.bench.compared import OURS
from hack.bench.goals import Goal
from hack.bench.placement.comparison import Verdict, comparisons, disproved
from hack.bench.placement.engines import STRATEGIES
from hack.bench.placement.outcome import Outcome
from hack.fleets.catalogue import BY_ROOM, RIPPLES, RULED, SCARCE

_GAP_PERCENT: Final = 0.1
_LARGE, _LARGEST = 2000, 10_000
_RIPPLE_MS: Final = {500: 30.0, 2000: 100.0, 10_000: 500.0}
SMALL: Final = 100
_SMALL_SECONDS: Final = 0.3
_GROUPS: Final = {f"T6_{{}}_of_at_most_{SMALL}": BY_ROOM, f"T6_{{}}_of_at_most_{SMALL}_with_rules": RULED}
"""The goal applies to fleets that only room limits; those whose pods have rules are reported separately."""


def goals(outcomes: Sequence[Outcome], *, slowness: float) -> list[Goal]:
    """Return the goals that were measured, with times at the pace of the machine on which they were set.

    T1 and T2 apply to large fleets in scarcity, T5 to small changes, T8 to proofs, T9 to equal answers; goals
    without a number must never be missed.
    """
    answered = [outcome for outcome in outcomes if outcome.levels]
    ours = [outcome for outcome in answered if outcome.engine == OURS]
    lost = sum(outcome.engine == OURS and bool(outcome.failure) for outcome in outcomes)
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
    ours: Sequence[Outcome], size: int, slowness: float, *, name: str, cpu_seconds: float
) -> Iterator[Goal]:
    """Yield the CPU time, gap and memory for families in which accelerator types are scarce."""
    here = _of(ours, size, lambda outcome: outcome.instance.family in SCARCE)
    spent = [seconds / slowness for outcome in here for seconds in outcome.cpu_seconds]
    if not spent:
        return
    p95 = float(np.percentile(spent, 95, method="inverted_cdf"))
    yield Goal(name=f"{name}_cpu_p95_of_{size}", value=p95, unit="s", most=cpu_seconds)
    gaps = [outcome.worst_gap_percent for outcome in here if outcome.worst_gap_percent is not None]
    if gaps:
        yield Goal(name=f"{name}_gap_of_{size}", value=max(gaps), unit="%", most=_GAP_PERCENT)
    if size == _LARGEST:
        peak = max(outcome.peak_mb for outcome in here)
        yield Goal(name=f"{name}_memory_of_{size}", value=peak, unit="MB", most=400.0)


def _ripples(ours: Sequence[Outcome], slowness: float) -> Iterator[Goal]:
    """Yield the CPU time after a change of one model of a hundred, without the first solve."""
    for size, most in _RIPPLE_MS.items():
        here = _of(ours, size, lambda outcome: outcome.instance.family == RIPPLES)
        spent = [seconds for outcome in here for seconds in outcome.cpu_seconds[1:]]
        if spent:
            value = statistics.median(spent) * 1000 / slowness
            yield Goal(name=f"T5_cpu_of_a_change_in_{size}", value=value, unit="ms", most=most)


def _proofs(ours: Sequence[Outcome], slowness: float) -> Iterator[Goal]:
    """Yield the largest proven gap, the CPU time of the slowest proof, and the share without one."""
    here = _of(ours, _LARGE, lambda outcome: outcome.steps == 1)
    proven = [outcome for outcome in here if outcome.worst_gap_percent is not None]
    if proven:
        gap = max(outcome.worst_gap_percent or 0.0 for outcome in proven)
        yield Goal(name=f"T8_gap_of_{_LARGE}", value=gap, unit="%", most=0.5)
        spent = max(statistics.median(outcome.cpu_seconds) for outcome in proven) / slowness
        yield Goal(name=f"T8_cpu_of_proof_of_{_LARGE}", value=spent, unit="s", most=5.0)
    if here:
        share = 100 * (len(here) - len(proven)) / len(here)
        yield Goal(name=f"T8_without_proof_of_{_LARGE}", value=share, unit="%", most=0.0)


def _determinism(ours: Sequence[Outcome]) -> Iterator[Goal]:
    repeated = [outcome for outcome in ours if len(outcome.plans) > 1]
    if repeated:
        most = max(len(set(outcome.plans)) for outcome in repeated)
        yield Goal(name="T9_different_answers_to_the_same", value=most, unit="answers", most=1)


def _gates(answered: Sequence[Outcome]) -> Iterator[Goal]:
    """Yield counts that must be 0: infeasible answers, disproved bounds, answers worse than a strategy's."""
    ours = [outcome for outcome in answered if outcome.engine == OURS]
    yield Goal(
        name="impossible_answers", value=sum(bool(one.wrong) for one in ours), unit="instances", most=0
    )
    yield Goal(name="bounds_disproved", value=len(disproved(answered)), unit="bounds", most=0)
    lost = {
        found.other.instance
        for found in comparisons(answered)
        if found.other.engine in STRATEGIES and found.verdict is Verdict.LOSS and found.other.steps == 1
    }
    yield Goal(name="worse_than_a_strategy", value=len(lost), unit="instances", most=0)


def _of(outcomes: Sequence[Outcome], size: int, wanted: Callable[[Outcome], bool]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.instance.size == size and wanted(outcome)]


def small_goals(outcomes: Sequence[Outcome], *, slowness: float) -> Iterator[Goal]:
    """Yield the CPU time of the slowest small fleet, and the share of fleets not proven optimal."""
    for name, families in _GROUPS.items():
        here = [one for one in small(outcomes) if one.instance.family in families]
        if here:
            spent = max(map(cpu_seconds, here)) / slowness
            yield Goal(name=name.format("cpu"), value=spent, unit="s", most=_SMALL_SECONDS)
            share = 100 * sum(not is_best(one) for one in here) / len(here)
            yield Goal(name=name.format("not_proven_optimal"), value=share, unit="%", most=0.0)


def small(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return our outcomes for small fleets, without sequences."""
    return [
        one
        for one in outcomes
        if one.engine == OURS and one.levels and one.instance.size <= SMALL and one.steps == 1
    ]


def cpu_seconds(one: Outcome) -> float:
    """Return the median CPU time of its solves."""
    return statistics.median(one.cpu_seconds)


def is_best(one: Outcome) -> bool:
    """Tell whether its answer is proven optimal at every level that has a bound."""
    return one.worst_gap_percent == 0
