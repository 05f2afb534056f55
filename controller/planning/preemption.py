"""Who gives way to higher priorities, and how many at once: what runs and is needed is preempted gradually.

A replica that goes counts as taken from its model if the model then has less of its demand met than what runs
would meet. So many may be taken with one plan as the settings allow in all, and of those that are ready as a
disruption budget of their pods allows. What is to go later stays, and nobody else gets what is freed: so each
plan comes nearer to the one in which all have gone. Quotas, budgets and ceilings hold in any case.
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
    """Replicas of one model that give way."""

    model: int
    replicas: Mapping[int, int]
    """By variant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradual:
    """The problem of the first step."""

    problem: PlacementProblem
    going: int
    """Replicas that are taken now."""


def taken(answer: Answer) -> tuple[Taken, ...]:
    """Return what an answer takes from models that need it, the lowest priority first."""
    running, granted = _running(answer), answer.granted.replicas
    found = []
    for model, demand in enumerate(answer.demands):
        stopped = {v: running[v] - granted[v] for v in answer.variants_of(model) if granted[v] < running[v]}
        is_needed = demand.signal.decides and stopped
        if is_needed and answer.unmet_per_mille(model, granted) > answer.unmet_per_mille(model, running):
            found.append(Taken(model=model, replicas=stopped))
    return tuple(sorted(found, key=lambda item: (-answer.demands[item.model].priority, item.model)))


def first_step(answer: Answer, problem: PlacementProblem, *, most: int) -> Gradual | None:
    """Return the problem in which no more is taken than allowed; None where the answer takes no more."""
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
    """Let go what a limit does not allow to stay, as far as the answer does."""
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
    """Return how many replicas of each variant lie on nodes and may stay."""
    return [min(len(terms.bound), terms.upper) for terms in answer.problem.variants]
