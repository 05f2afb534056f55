"""Find the fewest evictions that make room.

If sizes divide each other, an evicted pod of size k uses as many slots of each size up to k as it frees,
wherever it goes, so only larger sizes can gain slots (see `problem.Bin`). A way to evict pods from one node
is defined by the slots that it gains at the sizes with too few slots. Among evictions of one size the
cheapest come first, and a way is dropped if another gains as much at no higher cost: this excludes no
optimum. Nodes with the same remaining ways form one group, whatever else is on them.

An integer variable for each group and way counts the nodes where that is done. Evictions never reduce slots,
so sizes with enough slots for all pods need no row, and if all sizes have enough, nothing needs to be solved.
The remaining program has about ten variables, however large the cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product

import numpy as np

from controller.planning.cpsat import Effort, Program, Terms
from controller.planning.engine.shared import Integers

MOST_WAYS = 2000
"""The maximum number of ways considered per node: sufficient for every node with eight accelerators."""

_EXACT_KEYS = 2**62
"""States are compared by a single integer key below this, and by whole rows otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class MovableKind:
    """A kind of identical movable replicas."""

    accelerators: int
    price: int
    """Price of evicting one; positive."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Way:
    """The effect of evicting some replicas from a node."""

    price: int
    replicas: int
    gained: tuple[int, ...]
    """Slots gained of each short size, net of those that the evicted pods use again."""

    def is_no_better_than(self, other: Way) -> bool:
        """Return whether the other way gains at least as much at no higher cost."""
        return (
            other.price <= self.price
            and other.replicas <= self.replicas
            and all(theirs >= own for own, theirs in zip(self.gained, other.gained, strict=True))
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Evictions:
    """The pods to evict, and the pods for which that makes room."""

    evicted: tuple[tuple[int, int, int], ...]
    """(node, kind, replicas), sorted."""

    placed: Mapping[int, int]
    """Placed pods, by size."""

    is_proven: bool
    """Whether no other answer places more accelerators, or as many at a lower price."""


def fewest_evictions(
    free: Integers,
    movable: Integers,
    kinds: Sequence[MovableKind],
    pods: Mapping[int, int],
    *,
    most: int,
    effort: Effort,
) -> Evictions:
    """Return the evictions that make room for as many wanted accelerators as possible, at the least price.

    `free` (nodes,) is the free accelerators of each node; `movable` (nodes, kinds) the replicas of each kind
    there; `pods` the number of pods to place by size; at most `most` replicas are evicted. Each size must
    divide the next larger one.
    """
    room = np.maximum(free, 0)
    short = _short(room, kinds, pods)
    if not short:
        return Evictions(evicted=(), placed=dict(pods), is_proven=True)
    largest = max(short)
    order = sorted(
        (k for k, kind in enumerate(kinds) if kind.accelerators < largest),
        key=lambda k: (kinds[k].accelerators, kinds[k].price, k),
    )
    # Every size divides the largest, so gains only depend on the rest: more nodes are alike. Kinds of at
    # least that size are left out, because they use elsewhere what they free.
    states = _States(room % largest, movable[:, order], Choices([kinds[k] for k in order], [*short]))
    program = _StateProgram(states, pods, short)
    return program.solve(order, most=most, effort=effort)


def _short(room: Integers, kinds: Sequence[MovableKind], pods: Mapping[int, int]) -> dict[int, int]:
    """Return the slots of each size, ascending, that has too few slots for all wanted pods."""
    largest = max((size for size, count in pods.items() if count), default=0)
    lacking = {}
    for size in sorted(size for size in {*pods, *(kind.accelerators for kind in kinds)} if size <= largest):
        slots = int((room // size).sum())
        if sum(count * (k // size) for k, count in pods.items() if k >= size) > slots:
            lacking[size] = slots
    return lacking


class _States:
    """Nodes grouped by state, and states grouped by the ways they offer."""

    def __init__(self, free: Integers, movable: Integers, choices: Choices) -> None:
        first, self._state_of, counts = _alike(np.column_stack([free, movable]))
        self._choices = choices
        self._movable = movable[first].tolist()
        ways = [choices.ways(*state) for state in zip(free[first].tolist(), self._movable, strict=True)]
        self._replicas = [tuple(replicas for _, replicas in own) for own in ways]
        self.is_whole = choices.is_whole
        group_of: dict[tuple[Way, ...], int] = {}
        offered = [tuple(way for way, _ in own) for own in ways]
        self._group_of = np.array(
            [group_of.setdefault(own, len(group_of)) for own in offered], dtype=np.int64
        )
        self.groups = [*group_of]
        """The ways of each group of states, the cheapest first."""
        self.nodes = np.bincount(self._group_of, weights=counts, minlength=len(group_of)).astype(int).tolist()
        """Number of nodes in each group."""

    def nodes_by_way(self, group: int, node_counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (node, kind, replicas) for the number of nodes that take each way, first nodes first."""
        nodes = np.flatnonzero(self._group_of[self._state_of] == group)[: sum(node_counts)]
        way_of = (way for way, count in enumerate(node_counts) for _ in range(count))
        for node, state, way in zip(nodes.tolist(), self._state_of[nodes].tolist(), way_of, strict=True):
            for kind, replicas in self._choices.evictions(self._replicas[state][way], self._movable[state]):
                yield node, kind, replicas


class _StateProgram:
    """The integer program: on how many nodes each way is taken, and how many pods of each size are placed."""

    def __init__(self, states: _States, pods: Mapping[int, int], short: Mapping[int, int]) -> None:
        self._program = Program()
        self._states = states
        self._placed = {size: self._program.variables(1, count).start for size, count in sorted(pods.items())}
        self._nodes_by_way = [
            self._program.variables(len(ways), nodes)
            for ways, nodes in zip(states.groups, states.nodes, strict=True)
        ]
        self._numbered = [
            (variable, way)
            for ways, variables in zip(states.groups, self._nodes_by_way, strict=True)
            for variable, way in zip(variables, ways, strict=True)
        ]
        for variables, nodes in zip(self._nodes_by_way, states.nodes, strict=True):
            self._program.row([(variable, 1) for variable in variables], most=nodes)
        for at, (size, slots) in enumerate(short.items()):
            terms: Terms = [(variable, k // size) for k, variable in self._placed.items() if k >= size]
            terms += [(variable, -way.gained[at]) for variable, way in self._numbered if way.gained[at]]
            self._program.row(terms, most=slots)

    def solve(self, order: Sequence[int], *, most: int, effort: Effort) -> Evictions:
        """Return the best answer; `order` maps the movable kinds to their original indices."""
        self._program.row([(variable, way.replicas) for variable, way in self._numbered], most=most)
        # One placed accelerator outweighs all evictions together.
        dearest = (max((way.price for way in ways), default=0) for ways in self._states.groups)
        worth = 1 + sum(nodes * price for nodes, price in zip(self._states.nodes, dearest, strict=True))
        self._program.minimize(
            [(variable, way.price) for variable, way in self._numbered]
            + [(variable, -size * worth) for size, variable in self._placed.items()]
        )
        result = self._program.solve(effort)
        if not result.values:
            return Evictions(evicted=(), placed=dict.fromkeys(self._placed, 0), is_proven=False)
        return Evictions(
            evicted=tuple(sorted((node, order[kind], n) for node, kind, n in self._evictions(result.values))),
            placed={size: result.values[variable] for size, variable in self._placed.items()},
            is_proven=result.is_optimal and self._states.is_whole,
        )

    def _evictions(self, values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        for group, variables in enumerate(self._nodes_by_way):
            node_counts = [values[variable] for variable in variables]
            if any(node_counts):
                yield from self._states.nodes_by_way(group, node_counts)


def _alike(rows: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the first row of each distinct row, the distinct row of each row, and their counts."""
    bounds = [int(most) + 1 for most in rows.max(axis=0, initial=0)]
    if math.prod(bounds) > _EXACT_KEYS:
        _, first, kind_of, counts = np.unique(
            rows, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        return first, kind_of.reshape(-1), counts
    # Sorting one integer key per row is faster: sorting rows takes longer than solving the program.
    keys = rows @ np.cumprod([1, *bounds[:-1]])
    _, first, kind_of, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return first, kind_of, counts


class Choices:
    """The ways of nodes, by their free accelerators and movable replicas."""

    def __init__(self, kinds: Sequence[MovableKind], short: Sequence[int]) -> None:
        """Take the movable kinds and the sizes that are short of slots, both ascending."""
        self._kinds = kinds
        self._sizes = sorted({kind.accelerators for kind in kinds})
        self._of_size = [
            [k for k, kind in enumerate(kinds) if kind.accelerators == size] for size in self._sizes
        ]
        self._short = short
        self._useful = cache(self._useful_counts)
        self.is_whole = True
        """Whether all ways were considered."""

    def ways(self, free: int, movable: Sequence[int]) -> tuple[tuple[Way, tuple[int, ...]], ...]:
        """Return the non-dominated ways, the cheapest first, each with its replicas per size."""
        prices = [[*accumulate(self._prices(size, movable), initial=0)] for size in self._of_size]
        cheapest: dict[Way, tuple[int, ...]] = {}
        for counts, gained in self._useful(free, tuple(len(known) - 1 for known in prices)):
            price = sum(known[count] for known, count in zip(prices, counts, strict=True))
            cheapest.setdefault(Way(price=price, replicas=sum(counts), gained=gained), counts)
        kept: list[Way] = []
        for way in sorted(cheapest):
            if not any(way.is_no_better_than(other) for other in kept):
                kept.append(way)
        return tuple((way, cheapest[way]) for way in kept)

    def evictions(self, counts: Sequence[int], movable: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield (kind, replicas) for these counts per size, the cheapest kinds of a size first."""
        for kinds, count in zip(self._of_size, counts, strict=True):
            left = count
            for k in kinds:
                leaving = min(left, movable[k])
                left -= leaving
                if leaving:
                    yield k, leaving

    def _prices(self, kinds: Sequence[int], movable: Sequence[int]) -> Iterator[int]:
        for k in kinds:
            yield from [self._kinds[k].price] * movable[k]

    def _useful_counts(
        self, free: int, there: tuple[int, ...]
    ) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Return the minimal replica counts per size, each with the slots that they gain."""
        few = _few(there)
        self.is_whole &= few == list(there)
        gains = {
            counts: tuple(self._gain(size, free, counts) for size in self._short)
            for counts in product(*(range(count + 1) for count in few))
        }
        # Gains are monotone in evictions, so it suffices to check counts with one replica less.
        return tuple(
            (counts, gained)
            for counts, gained in gains.items()
            if any(gained)
            and all(
                gains[*counts[:at], count - 1, *counts[at + 1 :]] != gained
                for at, count in enumerate(counts)
                if count
            )
        )

    def _gain(self, size: int, free: int, counts: Sequence[int]) -> int:
        # Pods of this size or larger use as many of its slots elsewhere as they free here.
        smaller = sum(n * k for n, k in zip(counts, self._sizes, strict=True) if k < size)
        return (free + smaller) // size - free // size


def _few(movable: Sequence[int]) -> list[int]:
    """Return how many replicas of each size are considered: all, unless there are too many combinations."""
    counts = list(movable)
    while math.prod(count + 1 for count in counts) > MOST_WAYS:
        counts[counts.index(max(counts))] -= 1
    return counts
