"""Limit by disruption budgets how many needed replicas one plan preempts for higher priorities.

A stopped replica counts as preempted if its model then has less of its demand met than by current replicas.
One plan may preempt as many ready ones as the disruption budget of their pods allows. Replicas to be
preempted later stay, and no other variant gets what is freed: so each plan comes closer to the one in which
all are gone. Quotas, budgets and ceilings hold in any case.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from controller.planning.disruption import DisruptionLedger
from controller.planning.problem import LimitRow, PlacementProblem
from controller.planning.solved_problem import SolvedProblem


def preemptions(solved: SolvedProblem) -> list[tuple[int, int]]:
    """Return (variant, replicas) that a solution preempts from models in need, lowest priority first."""
    running, granted = _running(solved), solved.granted.replicas
    found = []
    for model, demand in sorted(enumerate(solved.demands), key=lambda item: (-item[1].priority, item[0])):
        stopped = [(v, running[v] - granted[v]) for v in solved.variants_of(model) if granted[v] < running[v]]
        is_needed = demand.signal.decides and stopped
        if is_needed and solved.unmet_per_mille(model, granted) > solved.unmet_per_mille(model, running):
            found += stopped
    return found


def first_step(solved: SolvedProblem, problem: PlacementProblem) -> tuple[PlacementProblem, int] | None:
    """Return the problem in which only allowed replicas are preempted, and how many are preempted now.

    None if the solution conforms.
    """
    running, granted = _running(solved), solved.granted.replicas
    kept = {v: min(running[v], granted[v]) for v in range(len(granted))}
    preempted, disruptions, is_exceeded = 0, DisruptionLedger(solved.snapshot), False
    for v, count in preemptions(solved):
        leaving = disruptions.preempt(solved.variants[v], count)
        preempted += leaving
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
    return replace(problem, variants=variants), preempted


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
    return [min(len(terms.bound_replicas), terms.upper) for terms in solved.problem.variants]
