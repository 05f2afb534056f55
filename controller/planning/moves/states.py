"""The fewest evictions that make room: nodes that are in the same state are one kind, however many there are.

A state is how much is free on a node and how many movable replicas of each kind lie on it. For each state
and each way to evict some of them there is one number: on how many such nodes that is done. What is evicted
has to find room again, beside what is to be placed; where sizes divide each other, the slots of each size
decide (see `problem.Bin`). Some forty states make a program of a few hundred numbers, however large the
cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.program import Terms
    from controller.planning.lexicographic import Limits


MOST_WAYS = 2000
"""How many ways to evict from one node are looked at: enough for all of an eight-accelerator node's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Movable replicas that are alike."""

    accelerators: int
    price: int
    """Of evicting one; positive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evictions:
    """What to evict, and what finds room then."""

    evicted: tuple[tuple[int, int, int], ...]
    """(node, kind, replicas), sorted."""

    placed: Mapping[int, int]
    """Size -> wanted replicas that find room."""

    is_proven: bool
    """Whether no answer places more accelerators, or as many at a lower price."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """To evict the same from some nodes of a state."""

    state: int
    evicted: tuple[int, ...]
    """Per kind."""

    free: int
    """On each of the nodes afterwards."""

    variable: int
    """How many nodes."""


def fewest_evictions(
    free: Integers,
    movable: Integers,
    kinds: Sequence[Kind],
    wanted: Mapping[int, int],
    *,
    most: int,
    limits: Limits,
) -> Evictions:
    """Return what to evict so that as many wanted accelerators as possible find room, at the least price.

    `free` is per node, (n,); `movable` how many replicas of each kind lie there, (n, kinds); `wanted` how
    many replicas of each size are to be placed; at most `most` replicas are evicted. Each size divides the
    next one.
    """
    looks = np.column_stack([np.maximum(free, 0), movable])
    # One number per node instead of a row of them: to sort rows takes longer than to solve the program.
    keys = looks @ np.cumprod([1, *(looks.max(axis=0, initial=0) + 1)][:-1])
    _, first, state_of, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    program = _StateProgram(kinds, wanted)
    for state, (values, count) in enumerate(zip(looks[first].tolist(), counts.tolist(), strict=True)):
        program.add_state(state, values[0], values[1:], count)
    return program.solve(state_of, most=most, limits=limits)


class _StateProgram:
    """The integer program: ways to evict, and how much of each size is placed."""

    def __init__(self, kinds: Sequence[Kind], wanted: Mapping[int, int]) -> None:
        self._program = Program()
        self._kinds = kinds
        self._placed = {
            size: self._program.variables(1, count).start for size, count in sorted(wanted.items())
        }
        self._ways: list[_Way] = []
        self._dearest = 0
        self._is_whole = True

    def add_state(self, state: int, free: int, movable: Sequence[int], nodes: int) -> None:
        """Add a state that so many nodes are in, with every way to evict from it."""
        first, few = len(self._ways), _few(movable)
        self._is_whole &= few == list(movable)
        for evicted in product(*(range(count + 1) for count in few)):
            gained = sum(n * kind.accelerators for n, kind in zip(evicted, self._kinds, strict=True))
            variable = self._program.variables(1, nodes).start
            self._ways.append(_Way(state=state, evicted=evicted, free=free + gained, variable=variable))
        self._program.row([(way.variable, 1) for way in self._ways[first:]], least=nodes, most=nodes)
        self._dearest += nodes * max(self._price(way) for way in self._ways[first:])

    def solve(self, state_of: Integers, *, most: int, limits: Limits) -> Evictions:
        """Return the best answer; `state_of` is per node."""
        self._program.row([(way.variable, sum(way.evicted)) for way in self._ways], most=most)
        for size in sorted({*self._placed, *(kind.accelerators for kind in self._kinds)}):
            self._fit(size)
        # One accelerator that finds room is worth more than all evictions together.
        worth = self._dearest + 1
        self._program.minimize(
            [(way.variable, self._price(way)) for way in self._ways if any(way.evicted)]
            + [(variable, -size * worth) for size, variable in self._placed.items()]
        )
        result = self._program.solve(limits)
        if not result.values:
            return Evictions(evicted=(), placed=dict.fromkeys(self._placed, 0), is_proven=False)
        return Evictions(
            evicted=tuple(sorted(self._named(result.values, state_of))),
            placed={size: result.values[variable] for size, variable in self._placed.items()},
            is_proven=result.is_optimal and self._is_whole,
        )

    def _fit(self, size: int) -> None:
        """Let what is placed and what is evicted take no more slots of a size than there are."""
        terms: Terms = [(variable, k // size) for k, variable in self._placed.items() if k >= size]
        for way in self._ways:
            again = sum(
                n * (kind.accelerators // size) for n, kind in zip(way.evicted, self._kinds, strict=True)
            )
            if again != way.free // size:
                terms.append((way.variable, again - way.free // size))
        self._program.row(terms, most=0)

    def _price(self, way: _Way) -> int:
        return sum(n * kind.price for n, kind in zip(way.evicted, self._kinds, strict=True))

    def _named(self, values: Sequence[int], state_of: Integers) -> Iterator[tuple[int, int, int]]:
        """Yield (node, kind, replicas): of the nodes in a state the first ones."""
        taken: dict[int, int] = {}
        for way in self._ways:
            nodes = values[way.variable] if any(way.evicted) else 0
            if nodes:
                start = taken.get(way.state, 0)
                taken[way.state] = start + nodes
                for node in np.flatnonzero(state_of == way.state)[start : start + nodes].tolist():
                    yield from ((node, kind, n) for kind, n in enumerate(way.evicted) if n)


def _few(movable: Sequence[int]) -> list[int]:
    """Return how many of each kind may leave one node: all, unless there are too many ways to choose."""
    counts = list(movable)
    while math.prod(count + 1 for count in counts) > MOST_WAYS:
        counts[counts.index(max(counts))] -= 1
    return counts
