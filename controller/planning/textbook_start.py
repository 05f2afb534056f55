"""Where the textbook model begins: the baseline, told so wholly that every objective has its true value."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.baseline import baseline
from controller.planning.problem import per_mille_missing, provided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ortools.sat.python.cp_model import IntVar

    from controller.planning.problem import PlacementProblem
    from controller.planning.textbook import Variables


def start(problem: PlacementProblem, variables: Variables) -> list[tuple[IntVar, int]]:
    """Return the baseline as values of variables.

    What the objectives add up is all among them: the solver would complete an assignment with any shortfall
    that is possible, and a search that is cut off could then take a worse one for a better.
    """
    replicas, shares = baseline(problem)
    return [
        *_places(problem, variables, shares),
        *_counts(problem, variables, replicas),
        *(
            (var, per_mille_missing(row.requirement, provided(problem, row, replicas)))
            for row, var in zip(problem.rows, variables.shortfall, strict=True)
        ),
    ]


def _places(
    problem: PlacementProblem, variables: Variables, shares: Mapping[tuple[int, int], int]
) -> Iterator[tuple[IntVar, int]]:
    """Yield how many replicas each bin takes, and which nodes are added for them."""
    bin_of = {node: b for b, bin_ in enumerate(problem.bins) for node in bin_.nodes}
    placed = Counter[tuple[int, int]]()
    for (node, v), count in shares.items():
        placed[bin_of[node], v] += count
    yield from ((var, placed[key]) for key, var in variables.placed.items())
    used = {node for node, _ in shares}
    yield from ((var, int(node in used)) for node, var in variables.opened.items())


def _counts(
    problem: PlacementProblem, variables: Variables, replicas: Sequence[int]
) -> Iterator[tuple[IntVar, int]]:
    """Yield the counts of each variant, and who of those that run stays."""
    for v, (terms, count) in enumerate(zip(problem.variants, replicas, strict=True)):
        leaving = max(0, len(terms.bound) - count)
        yield variables.replicas[v], count
        yield variables.new[v], max(0, count - len(terms.bound))
        yield variables.started[v], max(0, count - terms.current)
        yield variables.stopped[v], max(0, terms.current - count)
        yield variables.serving[v], min(terms.ready, count)
        yield from ((var, int(j >= leaving)) for j, var in enumerate(variables.stays[v]))
