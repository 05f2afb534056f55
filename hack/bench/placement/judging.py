"""What the answers of one measuring come to, as numbers of an outcome."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from controller.planning.problem import PlacementProblem, Solution
from hack.bench.placement.outcome import Bound
from hack.fleets import score
from hack.fleets.score import Unmet
from hack.fleets.verify import wrong


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """One answer to one problem."""

    problem: PlacementProblem
    solution: Solution
    cpu_seconds: float
    wall_seconds: float


def digest(solution: Solution) -> str:
    """Return what two answers share only if they place everything alike."""
    return hashlib.sha256(repr((solution.replicas, solution.placements)).encode()).hexdigest()[:16]


def levels(steps: Sequence[Solved]) -> dict[str, int]:
    """Return the sum of each level over the steps, in order."""
    sums = Counter[str]()
    for step in steps:
        sums.update(score.levels(step.problem, step.solution.replicas))
    names = [name for name in sums if name != score.COST]
    return {name: sums[name] for name in [*sorted(names, key=_order), score.COST]}


def faults(step: Solved) -> list[str]:
    """Return what is impossible about an answer, and what it says of itself that is better than it is."""
    values = score.levels(step.problem, step.solution.replicas)
    said = [proof for proof in step.solution.proofs if values.get(proof.level, 0) > proof.value]
    untrue = [f"{proof.level}: said to be {proof.value}, is {values[proof.level]}" for proof in said]
    return [*wrong(step.problem, step.solution), *untrue]


def bounds(solved: Solved) -> dict[str, Bound]:
    """Return what was proven of each level."""
    values = score.levels(solved.problem, solved.solution.replicas)
    return {
        proof.level: Bound(
            value=values[proof.level],
            bound=proof.bound,
            total=max(1, proof.total),
        )
        for proof in solved.solution.proofs
        if proof.level in values
    }


def mean_unmet(steps: Sequence[Solved]) -> tuple[Unmet, ...]:
    """Return the mean over steps, priority by priority."""
    found: dict[int, list[Unmet]] = {}
    for unmet in (one for step in steps for one in score.unmet(step.problem, step.solution.replicas)):
        found.setdefault(unmet.priority, []).append(unmet)
    return tuple(
        Unmet(
            priority=priority,
            by_value_percent=sum(unmet.by_value_percent for unmet in group) / len(group),
            by_model_percent=sum(unmet.by_model_percent for unmet in group) / len(group),
            models=round(sum(unmet.models for unmet in group) / len(group)),
        )
        for priority, group in sorted(found.items())
    )


def total(count: score.Count, steps: Sequence[Solved]) -> int:
    """Return something counted over all answers."""
    return sum(count(step.problem, step.solution.replicas) for step in steps)


def reversals(steps: Sequence[Solved]) -> int:
    """Return how often the replicas of a variant turned from up to down or back, over all variants."""
    turns = 0
    for counts in zip(*(step.solution.replicas for step in steps), strict=True):
        moves = [after - before for before, after in pairwise(counts) if after != before]
        turns += sum(before * after < 0 for before, after in pairwise(moves))
    return turns


def _order(name: str) -> tuple[int, str]:
    stages = ("minimum", "demand", "continuity")
    return stages.index(name.partition(" ")[0]), name
