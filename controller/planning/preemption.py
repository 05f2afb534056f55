"""Limit how many needed replicas one plan preempts for higher priorities.

A stopped replica counts as preempted if its model then has less of its demand met than by current replicas.
One plan may preempt as many as the settings allow in total, and as many ready ones as the disruption budget
of their pods allows. Replicas to be preempted later stay, and no other variant gets what is freed: so each
plan comes closer to the one in which all are gone. Quotas, budgets and ceilings hold in any case.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.planning.disruption import DisruptionLedger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.problem import LimitRow, PlacementProblem
    from controller.planning.solved_problem import SolvedProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Replicas that are preempted from one model."""

    model: int
    replicas: Mapping[int, int]
    """Number of replicas, by variant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradual:
    """The problem of the first preemption step."""

    problem: PlacementProblem
    going: int
    """Replicas that are preempted now."""


def taken(solved: SolvedProblem) -> tuple[Taken, ...]:
    """Return the replicas that a solution preempts from models that need them, lowest priority first."""
    running, granted = _running(solved), solved.granted.replicas
    found = []
    for model, demand in enumerate(solved.demands):
        stopped = {v: running[v] - granted[v] for v in solved.variants_of(model) if granted[v] < running[v]}
        is_needed = demand.signal.decides and stopped
        if is_needed and solved.unmet_per_mille(model, granted) > solved.unmet_per_mille(model, running):
            found.append(Taken(model=model, replicas=stopped))
    return tuple(sorted(found, key=lambda item: (-solved.demands[item.model].priority, item.model)))


def first_step(solved: SolvedProblem, problem: PlacementProblem, *, most: int) -> Gradual | None:
    """Return the problem in which only allowed replicas are preempted; None if the solution conforms."""
    running, granted = _running(solved), solved.granted.replicas
    kept = {v: min(running[v], granted[v]) for v in range(len(granted))}
    left, disruptions, is_exceeded, going = most, DisruptionLedger(solved.snapshot), False, 0
    for item in taken(solved):
        for v, count in sorted(item.replicas.items()):
            leaving = disruptions.preempt(solved.variants[v], min(count, left))
            left, going = left - leaving, going + leaving
            is_exceeded |= leaving < count
            kept[v] = running[v] - leaving
    if not is_exceeded:
        return None
    for row in problem.limits:
        _keep_limit(row, kept, granted)
    variants = tuple(
        replace(
            terms,
            lower=min(terms.upper, max(terms.lower, kept[v])),
            upper=min(terms.upper, max(terms.lower, kept[v], granted[v])),
        )
        for v, terms in enumerate(problem.variants)
    )
    return Gradual(problem=replace(problem, variants=variants), going=going)


def _keep_limit(row: LimitRow, kept: dict[int, int], granted: tuple[int, ...]) -> None:
    """Lower `kept` towards what is granted, in place, until a limit holds."""
    amounts = defaultdict[int, int](int)
    for v, amount in row.terms:
        amounts[v] += amount
    excess = sum(amount * kept[v] for v, amount in amounts.items()) - row.limit
    for v, amount in sorted(amounts.items(), reverse=True):
        spare = kept[v] - granted[v]
        if excess > 0 and amount and spare > 0:
            gone = min(spare, -(-excess // amount))
            kept[v] -= gone
            excess -= gone * amount


def _running(solved: SolvedProblem) -> list[int]:
    """Return how many replicas of each variant are bound to nodes and may stay."""
    return [min(len(terms.bound), terms.upper) for terms in solved.problem.variants]
