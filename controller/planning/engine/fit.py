"""Rows that place every new replica on real nodes.

Nodes that no replica might leave are interchangeable if they have the same number of free accelerators. If
sizes divide each other, slots decide what fits; otherwise each number of free accelerators has its packing
patterns. Nodes that replicas might leave have rows of their own, unless whole slots leave. In small bins with
placement rules or gangs, each node is modeled individually, also those that may be added.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from controller.planning.cpsat import Program, Terms
from controller.planning.engine.demands import (
    Amount,
    UnitDemand,
    bound_pods,
    demands_of,
    most_on_alike,
    most_on_node,
)
from controller.planning.engine.shared import Nodes
from controller.planning.problem import NO_DOMAIN, GrowthTerms, PlacementProblem

MOST_NODE_PODS = 600
"""Number of (node, demand) pairs up to which each has its own variable, where there are placement rules or
gangs; nodes that may be added count."""

MOST_FILLINGS = 2000
"""Packing patterns of one number of free accelerators above which only slots are counted."""


_NONE = -1


class _Place(NamedTuple):
    """A node, or a node that may be added."""

    node: int
    """`_NONE` for a node that may be added."""

    growth: int
    """`_NONE` for a node that exists."""

    free: int
    """Accelerators that are free, or become free if every replica leaves that may."""

    @property
    def exists(self) -> bool:
        """Whether it is a node that exists."""
        return self.node != _NONE


class Fit:
    """The rows for the nodes of one problem, and the variables that say where units go."""

    def __init__(
        self,
        program: Program,
        problem: PlacementProblem,
        nodes: Nodes,
        new: Mapping[int, Amount],
        *,
        leaving: Mapping[int, Amount],
        growth: Sequence[int],
        free: Sequence[int],
        likely: Sequence[int] | None = None,
    ) -> None:
        """Add the rows for the new replicas of each variant.

        `leaving` has the accelerators that may become free, by node; `growth` the variable for the added
        nodes of each growth; `free` the free accelerators of each node while all replicas stay; `likely` is
        that of `demands_of`.
        """
        self._program = program
        self._problem = problem
        self._nodes = nodes
        self._leaving = leaving
        self._growth = growth
        self._free = free
        self.demands, self.fixes_domains = demands_of(program, problem, new, likely=likely)
        self.is_exact = True
        """Whether every solution of the rows can be placed."""
        self.flows: dict[tuple[int, int], Terms] = {}
        """(demand, bin) -> units that go there."""
        self.on_node: dict[tuple[int, int, int], int] = {}
        """(demand, bin, node) -> pods there, in bins whose nodes are modeled individually."""
        self.packed: dict[tuple[int, int, tuple[int, ...]], int] = {}
        """(bin, free, sizes) -> nodes packed by this pattern."""
        for index, demand in enumerate(self.demands):
            self._route(index, demand)
        by_bin: dict[int, list[int]] = defaultdict(list)
        for index, bin_ in self.flows:
            by_bin[bin_].append(index)
        for bin_, here in sorted(by_bin.items()):
            self._fit_bin(bin_, [(index, self.demands[index]) for index in here])

    def _growth_terms(self, bin_: int) -> list[tuple[int, int, GrowthTerms]]:
        """Return (growth, variable, terms) of the nodes that may be added to a bin."""
        growth = zip(self._growth, self._problem.growth, strict=True)
        return [(index, variable, g) for index, (variable, g) in enumerate(growth) if g.bin == bin_]

    def _route(self, index: int, demand: UnitDemand) -> None:
        """Divide the units of a demand among its bins; with a single bin, no variables are needed."""
        if len(demand.bins) == 1:
            self.flows[index, demand.bins[0]] = demand.units
            return
        parts = self._program.variables(len(demand.bins), demand.most)
        self._program.row([*demand.units, *((part, -1) for part in parts)], most=0)
        for bin_, part in zip(demand.bins, parts, strict=True):
            self.flows[index, bin_] = [(part, 1)]

    def _fit_bin(self, bin_: int, here: Sequence[tuple[int, UnitDemand]]) -> None:
        """Add the rows of one bin: the simplest exact formulation, or slots if there is none."""
        nodes = len(self._problem.bins[bin_].nodes)
        nodes += sum(g.limit for _, _, g in self._growth_terms(bin_))
        has_rules = any(demand.variant >= 0 for _, demand in here)
        has_gangs = any(demand.pods > 1 for _, demand in here)
        if self._nodes.is_exact[bin_] and not has_rules:
            self._fit_slots(bin_, here)
        elif (has_rules or has_gangs) and nodes * len(here) <= MOST_NODE_PODS:
            self._fit_each_node(bin_, here)
        elif has_rules or has_gangs or self._has_many_patterns(bin_):
            self._fit_slots(bin_, here)
            self.is_exact = False
        else:
            self._fit_patterns(bin_, here)

    def _fit_slots(self, bin_: int, here: Sequence[tuple[int, UnitDemand]]) -> None:
        """Add a row for each slot size: units take no more slots of this size than there are."""
        nodes = self._nodes
        self._limit_per_node(bin_, here)
        for row in np.flatnonzero(nodes.row_bin == bin_).tolist():
            size, pods = int(nodes.row_size[row]), int(nodes.row_pods[row])
            terms = [
                (variable, weight * uses)
                for index, demand in here
                if (pods == 1 or demand.pods > 1)
                and (uses := demand.pods * (demand.accelerators // size) // pods)
                for variable, weight in self.flows[index, bin_]
            ]
            if not terms:
                continue
            if pods == 1:
                terms += [
                    (variable, -(g.accelerators // size))
                    for _, variable, g in self._growth_terms(bin_)
                    if g.accelerators >= size
                ]
            capacity, freed = (
                self._block_slots(bin_, size, pods) if pods > 1 else self._node_slots(bin_, size)
            )
            self._program.row([*terms, *freed], most=capacity)

    def _limit_per_node(self, bin_: int, here: Sequence[tuple[int, UnitDemand]]) -> None:
        """Add rows that limit a variant's pods in a bin to the sum of its limits per node: only necessary."""
        for index, demand in here:
            if demand.variant < 0:
                continue
            terms = self._problem.variants[demand.variant]
            there = bound_pods(terms)
            nodes = self._problem.bins[bin_].nodes
            most = most_on_alike(terms, ((there[n], self._free[n] + self._most_freed(n)) for n in nodes))
            grown = [
                (variable, -most_on_node(terms, 0, g.accelerators))
                for _, variable, g in self._growth_terms(bin_)
            ]
            self._program.row([*self.flows[index, bin_], *grown], most=most)

    def _most_freed(self, node: int) -> int:
        """Return the maximum number of accelerators that become free on a node."""
        return self._leaving[node].most if node in self._leaving else 0

    def _node_slots(self, bin_: int, size: int) -> tuple[int, Terms]:
        """Return the slots that are free while all replicas stay, and those that become free as terms."""
        capacity, terms, freed = 0, [], Counter[int]()
        for node in self._problem.bins[bin_].nodes:
            leaving = self._leaving[node].terms if node in self._leaving else []
            # If whole slots become free, whatever leaves, they need no variable.
            if leaving and (self._free[node] < 0 or any(weight % size for _, weight in leaving)):
                terms.append((self._slots_of(node, size), -1))
                continue
            capacity += max(0, self._free[node]) // size
            for variable, accelerators in leaving:
                freed[variable] -= accelerators // size
        return capacity, [*terms, *freed.items()]

    def _block_slots(self, bin_: int, size: int, pods: int) -> tuple[int, Terms]:
        """Return the gang slots of blocks that no replica might leave, and those of the others as terms."""
        blocks: dict[int, list[int]] = defaultdict(list)
        for node in self._problem.bins[bin_].nodes:
            blocks[int(self._nodes.block[node])].append(node)
        grown: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, variable, g in self._growth_terms(bin_):
            grown[int(self._nodes.growth_block[index])].append((variable, -(g.accelerators // size)))
        capacity, terms = 0, []
        for block in sorted({*blocks, *grown} - {NO_DOMAIN}):
            nodes = blocks[block]
            kept = sum(max(0, self._free[n]) // size for n in nodes if n not in self._leaving)
            parts = [(self._slots_of(n, size), -1) for n in nodes if n in self._leaving] + grown[block]
            if not parts:
                capacity += kept // pods
                continue
            most = kept + sum(self._program.most(variable) * -weight for variable, weight in parts)
            slots = self._program.variables(1, most // pods).start
            self._program.row([(slots, pods), *parts], most=kept)
            terms.append((slots, -1))
        return capacity, terms

    def _slots_of(self, node: int, size: int) -> int:
        """Return a variable for the slots of a node that replicas might leave."""
        slots = self._program.variables(1, max(0, self._free[node] + self._most_freed(node)) // size).start
        self._limit_by_free([(slots, size)], node)
        return slots

    def _limit_by_free(self, used: Terms, node: int) -> None:
        """Limit what is taken on a node to what is free after replicas have left.

        An overcommitted node provides nothing until enough has left; without the switch, the row would force
        them to.
        """
        leaving = self._leaving[node].terms if node in self._leaving else ()
        rest = [(variable, -weight) for variable, weight in leaving]
        free = self._free[node]
        if free >= 0 or not used:
            self._program.row([*used, *rest], most=max(0, free))
            return
        has_room = self._program.variables(1).start
        self._program.row([*used, *rest], most=free, only_if=has_room)
        for variable, _ in used:
            self._program.switch(variable, has_room)

    def _has_many_patterns(self, bin_: int) -> bool:
        """Return whether the node with the most free accelerators might have too many packing patterns."""
        sizes = self._problem.bins[bin_].sizes
        frees = [self._free[node] + self._most_freed(node) for node in self._problem.bins[bin_].nodes]
        frees += [g.accelerators for _, _, g in self._growth_terms(bin_)]
        most, ways = max(frees, default=0), 1.0
        for turn, size in enumerate(sizes[1:], start=1):
            ways *= (most / size + turn) / turn
        return ways > MOST_FILLINGS

    def _fit_patterns(self, bin_: int, here: Sequence[tuple[int, UnitDemand]]) -> None:
        """Pack nodes by patterns, grouped by free accelerators; nodes that replicas might leave singly."""
        program, problem = self._program, self._problem
        sizes = tuple(sorted({demand.accelerators for _, demand in here}, reverse=True))
        # The cutting stock formulation (Gilmore and Gomory 1961): as many nodes as exist are filled in one of
        # the maximal ways, and the fillings together supply the pods of each size. Nodes that replicas might
        # leave have a varying number of free accelerators, so they have one number of pods for each size.
        supply: dict[int, Terms] = {size: [] for size in sizes}
        nodes = problem.bins[bin_].nodes
        kinds = Counter(self._free[node] for node in nodes if node not in self._leaving)
        grown = self._growth_terms(bin_)
        for free in sorted({*kinds, *(g.accelerators for _, _, g in grown)}):
            added = [(variable, -1) for _, variable, g in grown if g.accelerators == free]
            most = kinds[free] + sum(g.limit for _, _, g in grown if g.accelerators == free)
            ways = node_patterns(sizes, free)
            chosen = program.variables(len(ways), most)
            program.row([*((variable, 1) for variable in chosen), *added], most=kinds[free])
            for pattern, variable in zip(ways, chosen, strict=True):
                self.packed[bin_, free, pattern] = variable
                for size, count in Counter(pattern).items():
                    supply[size].append((variable, -count))
        for node in nodes:
            if node not in self._leaving:
                continue
            most = max(0, self._free[node] + self._most_freed(node))
            own = [(variable, size) for size in sizes for variable in program.variables(1, most // size)]
            self._limit_by_free(own, node)
            for variable, size in own:
                supply[size].append((variable, -1))
        for size in sizes:
            demanded = [
                term
                for index, demand in here
                if demand.accelerators == size
                for term in self.flows[index, bin_]
            ]
            program.row([*demanded, *supply[size]], most=0)

    def _places(self, bin_: int) -> list[_Place]:
        """Return the nodes of a bin, and then those that may be added to it."""
        places = [
            _Place(node=node, growth=_NONE, free=self._free[node] + self._most_freed(node))
            for node in self._problem.bins[bin_].nodes
        ]
        for index, _, g in self._growth_terms(bin_):
            places += [_Place(node=_NONE, growth=index, free=g.accelerators)] * g.limit
        return places

    def _fit_each_node(self, bin_: int, here: Sequence[tuple[int, UnitDemand]]) -> None:
        """Add a variable for the pods of each demand on each node, with their rows."""
        program, problem, places = self._program, self._problem, self._places(bin_)
        used: list[Terms] = [[] for _ in places]
        for index, demand in here:
            blocks: dict[int, Terms] = defaultdict(list)
            terms = problem.variants[demand.variant] if demand.variant >= 0 else None
            there = bound_pods(terms) if terms else Counter[int]()
            for place, held in zip(places, used, strict=True):
                block = self._domain(place, demand.topology) if demand.pods > 1 else NO_DOMAIN
                if demand.pods > 1 and block == NO_DOMAIN:
                    continue
                most = max(0, place.free) // demand.accelerators
                if terms:
                    most = most_on_node(terms, there[place.node] if place.exists else 0, place.free)
                pods = program.variables(1, most).start
                if place.exists:
                    self.on_node[index, bin_, place.node] = pods
                held.append((pods, demand.accelerators))
                blocks[block].append((pods, -1))
            wholes = []
            for pods_in_block in blocks.values():
                most = sum(program.most(variable) for variable, _ in pods_in_block)
                whole = program.variables(1, most).start
                program.row([(whole, demand.pods), *pods_in_block], least=0, most=0)
                wholes.append((whole, -1))
            program.row([*self.flows[index, bin_], *wholes], most=0)
        for place, held in zip(places, used, strict=True):
            if place.exists:
                self._limit_by_free(held, place.node)
        self._limit_by_growth(places, used)

    def _domain(self, place: _Place, topology: int) -> int:
        if place.exists:
            return self._problem.topologies[topology][place.node]
        domains = self._problem.growth[place.growth].domains
        return domains[topology] if domains else NO_DOMAIN

    def _limit_by_growth(self, places: Sequence[_Place], used: Sequence[Terms]) -> None:
        """Let pods be on a node to be added only if it is; the nodes of one growth are added in order."""
        program = self._program
        added: dict[int, list[int]] = defaultdict(list)
        for place, held in zip(places, used, strict=True):
            if not place.exists:
                is_added = program.variables(1).start
                program.row([*held, (is_added, -place.free)], most=0)
                added[place.growth].append(is_added)
        for growth, switches in added.items():
            program.row([*((switch, 1) for switch in switches), (self._growth[growth], -1)], most=0)
            for first, second in pairwise(switches):
                program.row([(second, 1), (first, -1)], most=0)


def node_patterns(sizes: tuple[int, ...], free: int) -> list[tuple[int, ...]]:
    """Return the maximal fillings of `free` accelerators; sizes must descend."""
    return [pattern for pattern in _fillings(sizes, free) if pattern and free - sum(pattern) < sizes[-1]]


@lru_cache(maxsize=1024)
def _fillings(sizes: tuple[int, ...], free: int) -> tuple[tuple[int, ...], ...]:
    """Return all fillings of `free` accelerators with pods of descending sizes."""
    if not sizes:
        return ((),)
    most = max(0, free) // sizes[0]
    return tuple(
        (sizes[0],) * count + rest
        for count in range(most, -1, -1)
        for rest in _fillings(sizes[1:], free - count * sizes[0])
    )
