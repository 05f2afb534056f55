"""The same problem with its models in another order, and answers to it told in the first order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller.planning.problem import CoverRow, PlacementProblem, Solution


@dataclass(frozen=True, kw_only=True, slots=True)
class Permuted:
    """A shuffled problem."""

    problem: PlacementProblem
    order: tuple[int, ...]
    """The first problem's variant at each place."""

    def told(self, solution: Solution) -> Solution:
        """Return an answer to the shuffled problem as one to the first."""
        replicas = [0] * len(self.order)
        for v, count in zip(self.order, solution.replicas, strict=True):
            replicas[v] = count
        placements = sorted((self.order[v], node, count) for v, node, count in solution.placements)
        return replace(solution, replicas=tuple(replicas), placements=tuple(placements))


def permuted(problem: PlacementProblem, *, seed: int) -> Permuted:
    """Shuffle the models; the variants of each keep their order, nodes and bins theirs."""
    blocks = _blocks(problem)
    shuffled = np.random.default_rng(seed).permutation(len(blocks)).tolist()
    order = tuple(v for index in shuffled for v in blocks[index])
    at = {v: place for place, v in enumerate(order)}
    rows_of = {rows[0].model: rows for rows in _grouped(problem)}
    models = sorted(rows_of, key=lambda model: min(at[v] for row in rows_of[model] for v, _ in row.terms))
    rows = [replace(row, model=new) for new, model in enumerate(models) for row in rows_of[model]]
    shared: dict[int, tuple[int, ...]] = {}
    for bin_ in problem.bins:
        if id(bin_.variants) not in shared:
            shared[id(bin_.variants)] = tuple(sorted(at[v] for v in bin_.variants))
    return Permuted(
        order=order,
        problem=replace(
            problem,
            variants=tuple(problem.variants[v] for v in order),
            rows=tuple(replace(row, terms=_moved(row.terms, at)) for row in rows),
            bins=tuple(replace(bin_, variants=shared[id(bin_.variants)]) for bin_ in problem.bins),
            limits=tuple(replace(row, terms=_moved(row.terms, at)) for row in problem.limits),
        ),
    )


def _blocks(problem: PlacementProblem) -> list[list[int]]:
    """Return the variants of each model; of one that no row names, each variant by itself."""
    model_of = {v: row.model for row in problem.rows for v, _ in row.terms}
    blocks: dict[tuple[bool, int], list[int]] = {}
    for v in range(len(problem.variants)):
        blocks.setdefault((v in model_of, model_of.get(v, v)), []).append(v)
    return list(blocks.values())


def _grouped(problem: PlacementProblem) -> list[list[CoverRow]]:
    groups: dict[int, list[CoverRow]] = {}
    for row in problem.rows:
        groups.setdefault(row.model, []).append(row)
    return list(groups.values())


def _moved(terms: Sequence[tuple[int, int]], at: dict[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((at[v], amount) for v, amount in terms))
