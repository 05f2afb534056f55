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

    from controller.planning.answer import Answer
    from controller.planning.problem import LimitRow, PlacementProblem


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


def taken(answer: Answer) -> tuple[Taken, ...]:
    """Return the replicas that an answer preempts from models that need them, lowest priority first."""
    running, granted = _running(answer), answer.granted.replicas
    found = []
    for model, demand in enumerate(answer.demands):
        stopped = {v: running[v] - granted[v] for v in answer.variants_of(model) if granted[v] < running[v]}
        is_needed = demand.signal.decides and stopped
        if is_needed and answer.unmet_per_mille(model, granted) > answer.unmet_per_mille(model, running):
            found.append(Taken(model=model, replicas=stopped))
    return tuple(sorted(found, key=lambda item: (-answer.demands[item.model].priority, item.model)))


def first_step(answer: Answer, problem: PlacementProblem, *, most: int) -> Gradual | None:
    """Return the problem in which only allowed replicas are preempted; None if the answer conforms."""
    running, granted = _running(answer), answer.granted.replicas
    kept = {v: min(running[v], granted[v]) for v in range(len(granted))}
    left, disruptions, is_exceeded, going = most, DisruptionLedger(answer.snapshot), False, 0
    for item in taken(answer):
        for v, count in sorted(item.replicas.items()):
            leaving = disruptions.preempt(answer.variants[v], min(count, left))
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


def _running(answer: Answer) -> list[int]:
    """Return how many replicas of each variant are bound to nodes and may stay."""
    return [min(len(terms.bound), terms.upper) for terms in answer.problem.variants]
