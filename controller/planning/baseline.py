"""A plain good start: everybody stays; what is missing is added where there is room, most important first.

Where what runs exceeds a quota or a budget, only what must not be touched stays.

The solver begins here and never returns anything worse. Nothing is taken from anybody: who gives way is for
the solver to find.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.fit import hosts_of
from controller.planning.problem import Stage, freed, provided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.hosts import Hosts
    from controller.planning.problem import CoverRow, PlacementProblem


def baseline(problem: PlacementProblem) -> tuple[tuple[int, ...], Mapping[tuple[int, int], int]]:
    """Return replicas per variant, and how many new ones of a variant each (node, variant) takes."""
    replicas = [min(len(terms.bound), terms.upper) for terms in problem.variants]
    if not all(_has_budget(problem, replicas, v) for v in range(len(replicas))):
        return tuple(terms.lower for terms in problem.variants), {}
    hosts = hosts_of(problem, freed(problem, tuple(replicas)))
    bins_of: list[list[int]] = [[] for _ in problem.variants]
    for b, bin_ in enumerate(problem.bins):
        for v in bin_.variants:
            bins_of[v].append(b)
    shares: Counter[tuple[int, int]] = Counter()
    wanting = [row for row in problem.rows if row.stage is not Stage.CONTINUITY]
    for row in sorted(wanting, key=lambda row: row.level):
        while steps := list(_steps(problem, row, replicas, hosts=hosts, bins_of=bins_of)):
            _, v, node = min(steps, key=lambda step: step[:2])
            replicas[v] += 1
            if node is not None:
                hosts.take_on(node, problem.variants[v].accelerators)
                shares[node, v] += 1
    return tuple(replicas), shares


def _steps(
    problem: PlacementProblem,
    row: CoverRow,
    replicas: Sequence[int],
    *,
    hosts: Hosts,
    bins_of: Sequence[Sequence[int]],
) -> Iterator[tuple[float, int, int | None]]:
    """Yield each replica that would help the row and has room: (cost per useful amount, variant, node).

    For those whose place is not a matter of room on one node none is tried.
    """
    missing = row.requirement - provided(problem, row, tuple(replicas))
    for v, amount in row.terms:
        terms = problem.variants[v]
        if terms.is_choosy or terms.pods > 1:
            continue
        node = hosts.fullest(bins_of[v], terms.accelerators) if terms.accelerators else None
        has_room = node is not None or not terms.accelerators
        raised = [*replicas[:v], replicas[v] + 1, *replicas[v + 1 :]]
        if missing > 0 and has_room and replicas[v] < terms.upper and _has_budget(problem, raised, v):
            yield terms.cost / min(amount, missing), v, node


def _has_budget(problem: PlacementProblem, replicas: Sequence[int], variant: int) -> bool:
    """Tell whether no quota or budget that a variant uses is exceeded."""
    return all(
        sum(amount * replicas[v] for v, amount in row.terms) <= row.limit
        for row in problem.limits
        if any(v == variant for v, _ in row.terms)
    )
