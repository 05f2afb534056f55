"""Who gives way to higher priorities, and how many at once: what runs and is needed goes by and by.

A replica that goes counts as taken from its model if the model then has less of its demand met than what runs
would meet. So many may be taken with one plan as the settings allow in all, and as the disruption budget of
its pods allows of a variant; the others give way to later plans.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.planning.decision import Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.case import Answer
    from controller.planning.problem import PlacementProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Replicas of one model that give way."""

    model: int
    replicas: Mapping[int, int]
    """By variant."""


def taken(answer: Answer) -> tuple[Taken, ...]:
    """Return what an answer takes from models that need it, the lowest priority first."""
    running, granted = _running(answer), answer.granted.replicas
    found = []
    for model, demand in enumerate(answer.demands):
        stopped = {v: running[v] - granted[v] for v in answer.variants_of(model) if granted[v] < running[v]}
        is_needed = demand.signal is Signal.FRESH and stopped
        if is_needed and answer.unmet_per_mille(model, granted) > answer.unmet_per_mille(model, running):
            found.append(Taken(model=model, replicas=stopped))
    return tuple(sorted(found, key=lambda item: (-answer.demands[item.model].priority, item.model)))


def held_back(answer: Answer, problem: PlacementProblem, *, most: int) -> PlacementProblem | None:
    """Return the problem in which no more may be taken than allowed; None where the answer takes no more.

    Those of the lowest priority give way first. Nobody is taken from instead: of what runs, everybody keeps
    what the answer leaves.
    """
    running = _running(answer)
    kept = {
        v: min(count, granted)
        for v, (count, granted) in enumerate(zip(running, answer.granted.replicas, strict=True))
    }
    left, is_exceeded = most, False
    for item in taken(answer):
        for v, count in sorted(item.replicas.items()):
            allowed = answer.variants[v].evictable_replicas
            going = min(count, left if allowed is None else min(left, allowed))
            left -= going
            is_exceeded |= going < count
            kept[v] = running[v] - going
    if not is_exceeded:
        return None
    return replace(
        problem,
        variants=tuple(
            replace(terms, lower=max(terms.lower, kept[v])) for v, terms in enumerate(problem.variants)
        ),
    )


def _running(answer: Answer) -> list[int]:
    """Return how many replicas of each variant lie on nodes and may stay."""
    return [min(len(terms.bound), terms.upper) for terms in answer.problem.variants]
