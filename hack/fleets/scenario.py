"""The input of engines: a problem, optionally with later changes of demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from controller.planning.problem import (
    CountedReplicas,
    CoverRow,
    PlacementProblem,
    Solution,
    Stage,
    VariantTerms,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One problem, or a sequence in which each begins with the previous solution."""

    problem: PlacementProblem
    demands: tuple[tuple[int, ...], ...] = ()
    """Requirement of each model at every further step, by model; 0 for none."""


def after(problem: PlacementProblem, solution: Solution, demands: Sequence[int]) -> PlacementProblem:
    """Return the next problem: the solution runs, new replicas are not ready yet, and demand has changed.

    The most recently started replicas come first in removal order.
    """
    new: list[list[int]] = [[] for _ in problem.variants]
    for v, node, count in solution.placements:
        new[v] += [node] * count
    free = list(problem.free)
    variants: list[VariantTerms] = []
    for terms, count, hosts in zip(problem.variants, solution.replicas, new, strict=True):
        leaving = max(0, len(terms.bound_replicas) - count)
        for places in terms.bound_replicas[:leaving]:
            for left in places:
                free[left] += terms.accelerators
        for host in hosts:
            free[host] -= terms.accelerators
        kept = terms.bound_replicas[leaving:]
        variants.append(
            replace(
                terms, current=count, bound_replicas=(*((host,) for host in hosts), *kept), ready=len(kept)
            )
        )
    rows = _rows(problem, variants, demands)
    return replace(problem, variants=_with_bounds(variants, rows), free=tuple(free), rows=tuple(rows))


def _rows(
    problem: PlacementProblem, variants: Sequence[VariantTerms], demands: Sequence[int]
) -> list[CoverRow]:
    """Return the rows for changed demands, which keep ready replicas until they are replaced."""
    rows = []
    for row in problem.rows:
        if row.stage is Stage.MINIMUM:
            rows.append(row)
        if row.stage is Stage.DEMAND:
            changed = replace(row, requirement=demands[row.model])
            ready = sum(amount * variants[v].ready for v, amount in row.terms)
            rows.append(changed)
            if kept := min(ready, changed.requirement):
                rows.append(
                    replace(changed, stage=Stage.CONTINUITY, requirement=kept, counted=CountedReplicas.READY)
                )
    return rows


def _with_bounds(variants: Sequence[VariantTerms], rows: Sequence[CoverRow]) -> tuple[VariantTerms, ...]:
    """Return the variants with upper bounds at the largest useful number of replicas."""
    upper = [terms.current for terms in variants]
    for row in rows:
        for v, amount in row.terms:
            upper[v] = max(upper[v], -(-row.requirement // amount))
    return tuple(replace(terms, upper=most) for terms, most in zip(variants, upper, strict=True))
