"""Rows that give every new replica a place on a real node, exactly.

Nodes that no replica might leave are alike if as much is free on them. Where sizes divide each other their
slots say what fits; elsewhere each number of free accelerators has its packing patterns. A node that
replicas might leave has room that depends on who leaves, and rows of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import NO_DOMAIN

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

    on_node: dict[tuple[int, int], int] = field(default_factory=dict)
    """(class, node) -> pods of the class there; only in bins whose nodes are looked at one by one."""

    routed: list[tuple[int, int, int]] = field(default_factory=list)
    """(variable, class, bin) of the flows of classes that have several bins to go to."""

    slots: list[NodeSlots] = field(default_factory=list)
    """Of nodes that others might leave; only where slots suffice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSlots:
    """The variable for how many slots of a size a node has that replicas might leave."""

    variable: int
    size: int
    free: int
    """Accelerators, when all stay."""

    gone: Terms
    has_room: int | None
    """Variable for whether anything is free at all, on a node that is overcommitted when all stay."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Site:
    """One bin, with what goes there, what leaves it, and what can be added to it."""

    bin: int
    flows: Mapping[int, Terms]
    """Class -> replicas of the class that go there."""

    leaving: Mapping[int, Terms]
    growth: Mapping[int, int]
    """Growth -> variable for how many of its nodes are added."""


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
    gone: dict[int, dict[int, Terms]] = defaultdict(dict)
    for node, terms in leaving.items():
        gone[int(resources.node_bin[node])][node] = terms
    flows: dict[int, dict[int, Terms]] = defaultdict(dict)
    for (group, bin_), flow in fitting.flows.items():
        flows[bin_][group] = flow
    for bin_, by_slots in enumerate(resources.fits_by_slots.tolist()):
        added = {g: growth[g] for g in np.flatnonzero(resources.growth_bin == bin_).tolist()}
        site = _Site(bin=bin_, flows=flows[bin_], leaving=gone[bin_], growth=added)
        if resources.fits_by_nodes[bin_]:
            _fit_each_node(program, resources, fitting, site)
        elif by_slots:
            _fit_slots(program, resources, fitting, site)
        else:
            _fit_patterns(program, resources, fitting, site)
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
            fitting.routed.append((part, group, bin_))


def _fit_slots(program: Program, resources: Resources, fitting: Fitting, site: _Site) -> None:
    """Let no size's slots run out, neither on nodes nor in blocks of them."""
    _keep_apart(program, resources, site)
    uses = (resources.uses if resources.is_exact[site.bin] else resources.safe_uses)[:, site.bin]
    for row in np.flatnonzero(resources.row_bin == site.bin).tolist():
        terms = [
            (variable, weight * int(uses[group, row]))
            for group, flow in site.flows.items()
            if uses[group, row]
            for variable, weight in flow
        ]
        if not terms:
            continue
        terms += [(variable, -int(resources.growth_slots[g, row])) for g, variable in site.growth.items()]
        supply = _supply_of_blocks if resources.row_pods[row] > 1 else _supply_of_nodes
        capacity, freed = supply(program, resources, fitting, row, site.leaving)
        program.row([*terms, *freed], most=capacity)


def _keep_apart(program: Program, resources: Resources, site: _Site) -> None:
    """Let no class send more pods to a bin than its nodes may have of it: necessary, not sufficient."""
    nodes = np.flatnonzero(resources.node_bin == site.bin)
    gone = np.array(
        [sum(weight for _, weight in site.leaving.get(node, ())) for node in nodes.tolist()], dtype=np.int64
    )
    for group, (most, _) in resources.apart.items():
        if resources.allowed[group, site.bin]:
            size = int(resources.sizes[group])
            room = np.maximum(0, resources.free[nodes] + gone) // size
            here = int(np.minimum(room, resources.most_on_nodes(group, nodes)).sum())
            grown = [(v, -min(most, int(resources.growth_size[g]) // size)) for g, v in site.growth.items()]
            program.row([*site.flows[group], *grown], most=here)


def _fit_each_node(program: Program, resources: Resources, fitting: Fitting, site: _Site) -> None:
    """Say for each node how many pods of each class lie there; no node can be added to such a bin."""
    nodes = np.flatnonzero(resources.node_bin == site.bin).tolist()
    taken: dict[int, Terms] = {node: [] for node in nodes}
    for group in np.flatnonzero(resources.allowed[:, site.bin]).tolist():
        size, pods = int(resources.sizes[group]), int(resources.pods[group])
        blocks: dict[int, Terms] = defaultdict(list)
        for node, most in zip(nodes, resources.most_on_nodes(group, np.array(nodes)).tolist(), strict=True):
            gone = sum(weight for _, weight in site.leaving.get(node, ()))
            (here,) = program.variables(1, min(most, max(0, int(resources.free[node]) + gone) // size))
            fitting.on_node[group, node] = here
            taken[node].append((here, size))
            blocks[int(resources.node_block[node]) if pods > 1 else NO_DOMAIN].append((here, -1))
        wholes = program.variables(len(blocks), int(resources.most_replicas[group]))
        for whole, lying in zip(wholes, blocks.values(), strict=True):
            program.row([(whole, pods), *lying], least=0, most=0)
        program.row([*site.flows[group], *((whole, -1) for whole in wholes)], most=0)
    for node, terms in taken.items():
        free = int(resources.free[node])
        if node in site.leaving:
            _limit_by_free(program, terms, free, site.leaving[node])
        else:
            program.row(terms, most=max(0, free))


def _supply_of_nodes(
    program: Program, resources: Resources, fitting: Fitting, row: int, leaving: Mapping[int, Terms]
) -> tuple[int, Terms]:
    """Return the slots of nodes that nobody might leave, and as terms those of the others."""
    size, capacity = int(resources.row_size[row]), int(resources.slots[row])
    terms: Terms = []
    for node, gone in leaving.items():
        capacity -= max(0, int(resources.free[node])) // size
        terms.append((_slots_of_node(program, resources, fitting, (node, size), gone), -1))
    return capacity, terms


def _supply_of_blocks(
    program: Program, resources: Resources, fitting: Fitting, row: int, leaving: Mapping[int, Terms]
) -> tuple[int, Terms]:
    """Return the slots of blocks that nobody might leave, and as terms those of the others."""
    size, pods = int(resources.row_size[row]), int(resources.row_pods[row])
    capacity = int(resources.slots[row])
    terms: Terms = []
    for block in sorted({int(resources.node_block[node]) for node in leaving}):
        here = np.flatnonzero(
            (resources.node_bin == resources.row_bin[row]) & (resources.node_block == block)
        )
        kept = sum(max(0, int(resources.free[n])) // size for n in here.tolist() if n not in leaving)
        whole = int((np.maximum(resources.free[here], 0) // size).sum())
        parts: Terms = []
        most = kept
        for node in (n for n in here.tolist() if n in leaving):
            parts.append((_slots_of_node(program, resources, fitting, (node, size), leaving[node]), -1))
            most += max(0, int(resources.free[node]) + sum(weight for _, weight in leaving[node])) // size
        (slots,) = program.variables(1, most // pods)
        program.row([(slots, pods), *parts], most=kept)
        capacity -= whole // pods
        terms.append((slots, -1))
    return capacity, terms


def _slots_of_node(
    program: Program, resources: Resources, fitting: Fitting, at: tuple[int, int], gone: Terms
) -> int:
    """Return the variable for how many slots a node that replicas might leave has; `at` is (node, size)."""
    node, size = at
    free = int(resources.free[node])
    (slots,) = program.variables(1, max(0, free + sum(weight for _, weight in gone)) // size)
    has_room = _limit_by_free(program, [(slots, size)], free, gone)
    fitting.slots.append(NodeSlots(variable=slots, size=size, free=free, gone=gone, has_room=has_room))
    return slots


def _limit_by_free(program: Program, taken: Terms, free: int, gone: Terms) -> int | None:
    """Let what is taken on a node be at most what is free once others have gone.

    An overcommitted node gives nothing until enough has gone; without the switch, which is returned, it would
    force them to go.
    """
    rest = [(variable, -weight) for variable, weight in gone]
    if free >= 0:
        program.row([*taken, *rest], most=free)
        return None
    (has_room,) = program.variables(1)
    program.row([*taken, *rest], most=free, only_if=has_room)
    for variable, _ in taken:
        program.switch(variable, has_room)
    return has_room


def _fit_patterns(program: Program, resources: Resources, fitting: Fitting, site: _Site) -> None:
    """Pack each kind of node by patterns, and each node that others might leave for itself."""
    bin_, leaving, growth = site.bin, site.leaving, site.growth
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
        asked = [term for group in groups if resources.sizes[group] == size for term in site.flows[group]]
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
