"""The goals of placement, for what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hack.bench.goals import Goal
from hack.bench.placement.engines import STRATEGIES
from hack.bench.placement.report import Standing, comparisons, contradictions
from hack.bench.placement.result import EngineResult
from hack.bench.run import OURS
from hack.fleets.catalogue import BY_ROOM, RULED, SCARCE

_GAP_PERCENT: Final = 0.1
_LARGE: Final = 2000
_SMALL: Final = 100
_SMALL_SECONDS: Final = 0.3
_GROUPS: Final = {f"T6_{{}}_of_at_most_{_SMALL}": BY_ROOM, f"T6_{{}}_of_at_most_{_SMALL}_with_rules": RULED}
"""The goal applies to fleets that only room limits; those whose pods have rules are reported separately."""


def goals(results: Sequence[EngineResult], *, slowness: float) -> list[Goal]:
    """Return the goals that were measured, with times at the pace of the machine on which they were set.

    T1 applies to large fleets in scarcity, T6 to small fleets, T8 to proofs, T9 to equal answers; goals
    without a number must never be missed.
    """
    answered = [result for result in results if result.levels]
    ours = [result for result in answered if result.engine == OURS]
    lost = sum(result.engine == OURS and bool(result.failure) for result in results)
    answers = Goal(name="without_an_answer", value=lost, unit="instances", most=0)
    if not ours:
        return [answers] if lost else []
    return [
        *_scarce(ours, slowness),
        *_small(ours, slowness),
        *_proofs(ours, slowness),
        *_determinism(ours),
        *_gates(answered),
        answers,
    ]


def _scarce(ours: Sequence[EngineResult], slowness: float) -> Iterator[Goal]:
    """Yield the CPU time and gap for large fleets in which accelerator types are scarce."""
    here = [one for one in _of(ours, _LARGE) if one.instance.family in SCARCE]
    spent = [seconds / slowness for result in here for seconds in result.cpu_seconds]
    if not spent:
        return
    p95 = float(np.percentile(spent, 95, method="inverted_cdf"))
    yield Goal(name=f"T1_cpu_p95_of_{_LARGE}", value=p95, unit="s", most=3.0)
    gaps = [result.worst_gap_percent for result in here if result.worst_gap_percent is not None]
    if gaps:
        yield Goal(name=f"T1_gap_of_{_LARGE}", value=max(gaps), unit="%", most=_GAP_PERCENT)


def _small(ours: Sequence[EngineResult], slowness: float) -> Iterator[Goal]:
    """Yield the CPU time of the slowest small fleet, and the share of fleets not proven optimal."""
    small = [one for one in ours if one.instance.size <= _SMALL]
    for name, families in _GROUPS.items():
        if here := [one for one in small if one.instance.family in families]:
            spent = max(statistics.median(one.cpu_seconds) for one in here) / slowness
            yield Goal(name=name.format("cpu"), value=spent, unit="s", most=_SMALL_SECONDS)
            share = 100 * sum(one.worst_gap_percent != 0 for one in here) / len(here)
            yield Goal(name=name.format("not_proven_optimal"), value=share, unit="%", most=0.0)


def _proofs(ours: Sequence[EngineResult], slowness: float) -> Iterator[Goal]:
    """Yield the largest proven gap, the CPU time of the slowest proof, and the share without one."""
    here = _of(ours, _LARGE)
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
    yield Goal(name="bounds_disproved", value=len(contradictions(answered)), unit="bounds", most=0)
    lost = {
        comparison.other.instance
        for comparison in comparisons(answered)
        if comparison.other.engine in STRATEGIES and comparison.standing is Standing.LOSS
    }
    yield Goal(name="worse_than_a_strategy", value=len(lost), unit="instances", most=0)


def _of(results: Sequence[EngineResult], size: int) -> list[EngineResult]:
    return [result for result in results if result.instance.size == size]
