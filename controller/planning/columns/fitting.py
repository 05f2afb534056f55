"""Rows that give every new replica a place on a real node, exactly.

Nodes that no replica might leave are alike if as much is free on them. Where sizes divide each other their
slots say what fits; elsewhere each number of free accelerators has its packing patterns. A node that
replicas might leave has room that depends on who leaves, and rows of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.program import Program, Terms
    from controller.planning.columns.resources import Resources

Pattern = tuple[int, ...]
"""The sizes of the replicas that lie on one node, the largest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitting:
    """Says where replicas go, in the program's variables."""

    flows: dict[tuple[int, int], Terms] = field(default_factory=dict)
    """(class, bin) -> replicas of the class that go there."""

    patterns: dict[tuple[int, int, Pattern], int] = field(default_factory=dict)
    """(bin, free accelerators, pattern) -> nodes that are packed so; only where slots do not suffice."""

    own: dict[tuple[int, int], int] = field(default_factory=dict)
    """(node, size) -> replicas on a node that others might leave; only where slots do not suffice."""


def fit_replicas(
    program: Program,
    resources: Resources,
    *,
    asked: Sequence[Terms],
    leaving: Mapping[int, Terms],
    growth: Sequence[int],
) -> Fitting:
    """Add the rows: new replicas `asked` per class, accelerators `leaving` each node, and nodes to add."""
    fitting = Fitting()
    _route(program, resources, asked, fitting)
    for bin_, is_exact in enumerate(resources.is_exact.tolist()):
        here = {node: terms for node, terms in leaving.items() if resources.node_bin[node] == bin_}
        added = {g: growth[g] for g in np.flatnonzero(resources.growth_bin == bin_).tolist()}
        fit = _fit_slots if is_exact else _fit_patterns
        fit(program, resources, fitting, bin_=bin_, leaving=here, growth=added)
    return fitting


def _route(program: Program, resources: Resources, asked: Sequence[Terms], fitting: Fitting) -> None:
    """Divide the replicas of each class among its bins; where there is but one, they are its own terms."""
    for group, terms in enumerate(asked):
        bins = np.flatnonzero(resources.allowed[group]).tolist()
        if len(bins) == 1:
            fitting.flows[group, bins[0]] = terms
            continue
        parts = program.variables(len(bins), int(resources.most_replicas[group]))
        program.row([*terms, *((part, -1) for part in parts)], most=0)
        for bin_, part in zip(bins, parts, strict=True):
            fitting.flows[group, bin_] = [(part, 1)]


def _fit_slots(
    program: Program,
    resources: Resources,
    fitting: Fitting,
    *,
    bin_: int,
    leaving: Mapping[int, Terms],
    growth: Mapping[int, int],
) -> None:
    """Let no size's slots run out."""
    for row in np.flatnonzero(resources.row_bin == bin_).tolist():
        size, capacity = int(resources.row_size[row]), int(resources.slots[row])
        terms = [
            (variable, weight * int(resources.uses[group, bin_, row]))
            for (group, where), flow in fitting.flows.items()
            if where == bin_ and resources.uses[group, bin_, row]
            for variable, weight in flow
        ]
        terms += [(variable, -int(resources.growth_slots[g, row])) for g, variable in growth.items()]
        for node, gone in leaving.items():
            free = int(resources.free[node])
            capacity -= max(0, free) // size
            (slots,) = program.variables(1, max(0, free + sum(weight for _, weight in gone)) // size)
            _limit_by_free(program, [(slots, size)], free, gone)
            terms.append((slots, -1))
        program.row(terms, most=capacity)


def _limit_by_free(program: Program, taken: Terms, free: int, gone: Terms) -> None:
    """Let what is taken on a node be at most what is free once others have gone.

    An overcommitted node gives nothing until enough has gone; without the switch it would force them to go.
    """
    rest = [(variable, -weight) for variable, weight in gone]
    if free >= 0:
        program.row([*taken, *rest], most=free)
        return
    (has_room,) = program.variables(1)
    program.row([*taken, *rest], most=free, only_if=has_room)
    for variable, _ in taken:
        program.switch(variable, has_room)


def _fit_patterns(
    program: Program,
    resources: Resources,
    fitting: Fitting,
    *,
    bin_: int,
    leaving: Mapping[int, Terms],
    growth: Mapping[int, int],
) -> None:
    """Pack each kind of node by patterns, and each node that others might leave for itself."""
    groups = np.flatnonzero(resources.allowed[:, bin_]).tolist()
    sizes = tuple(sorted({int(resources.sizes[group]) for group in groups}, reverse=True))
    supply: dict[int, Terms] = {size: [] for size in sizes}
    nodes = np.flatnonzero(resources.node_bin == bin_).tolist()
    kinds = Counter(int(resources.free[node]) for node in nodes if node not in leaving)
    grown = {int(resources.growth_size[g]): 0 for g in growth}
    for free in sorted({*kinds, *grown}):
        added = [(variable, -1) for g, variable in growth.items() if resources.growth_size[g] == free]
        most = kinds[free] + sum(
            int(resources.growth_limit[g]) for g in growth if resources.growth_size[g] == free
        )
        patterns = _patterns(sizes, free)
        chosen = program.variables(len(patterns), most)
        program.row([*((variable, 1) for variable in chosen), *added], most=kinds[free])
        for pattern, variable in zip(patterns, chosen, strict=True):
            fitting.patterns[bin_, free, pattern] = variable
            for size, count in Counter(pattern).items():
                supply[size].append((variable, -count))
    for node, gone in leaving.items():
        free = int(resources.free[node])
        most = max(0, free + sum(weight for _, weight in gone))
        own = [(variable, size) for size in sizes for variable in program.variables(1, most // size)]
        _limit_by_free(program, own, free, gone)
        for variable, size in own:
            fitting.own[node, size] = variable
            supply[size].append((variable, -1))
    for size in sizes:
        asked = [
            term for group in groups if resources.sizes[group] == size for term in fitting.flows[group, bin_]
        ]
        program.row([*asked, *supply[size]], most=0)


def _patterns(sizes: tuple[int, ...], free: int) -> list[Pattern]:
    """Return the ways to fill `free` accelerators to which nothing can be added; sizes descend."""
    return [pattern for pattern in _fillings(sizes, free) if pattern and free - sum(pattern) < sizes[-1]]


@cache
def _fillings(sizes: tuple[int, ...], free: int) -> tuple[Pattern, ...]:
    """Return all ways to lay replicas of descending sizes into `free` accelerators."""
    if not sizes:
        return ((),)
    most = max(0, free) // sizes[0]
    return tuple(
        (sizes[0],) * count + rest
        for count in range(most, -1, -1)
        for rest in _fillings(sizes[1:], free - count * sizes[0])
    )
