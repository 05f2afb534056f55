"""Find the fewest evictions that make room, with nodes that offer the same choices grouped.

An integer variable for each group of nodes and each way to evict from them (see `ways`) counts the nodes
where that is done. Evicted pods must find room again, besides the pods to be placed; if sizes divide each
other, this is decided by the slots of each size (see `problem.Bin`). Evictions never reduce slots, so sizes
with enough slots for all pods need no row, and if all sizes have enough, nothing needs to be solved. The
remaining program has about ten variables, however large the cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.cpsat import Program
from controller.planning.moves.ways import Choices, Kind, Way

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.cpsat import Effort, Terms
    from controller.planning.engine.shared import Integers

_EXACT_KEYS = 2**62
"""States are compared by a single integer key below this, and by whole rows otherwise."""


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
    kinds: Sequence[Kind],
    wanted: Mapping[int, int],
    *,
    most: int,
    effort: Effort,
) -> Evictions:
    """Return the evictions that make room for as many wanted accelerators as possible, at the least price.

    `free` (nodes,) is the free accelerators of each node; `movable` (nodes, kinds) the replicas of each kind
    there; `wanted` the number of pods to place by size; at most `most` replicas are evicted. Each size must
    divide the next larger one.
    """
    room = np.maximum(free, 0)
    short = _short(room, kinds, wanted)
    if not short:
        return Evictions(evicted=(), placed=dict(wanted), is_proven=True)
    largest = max(short)
    order = sorted(
        (k for k, kind in enumerate(kinds) if kind.accelerators < largest),
        key=lambda k: (kinds[k].accelerators, kinds[k].price, k),
    )
    states = _States(room % largest, movable[:, order], Choices([kinds[k] for k in order], [*short]))
    program = _StateProgram(states, wanted, short)
    return program.solve(order, most=most, effort=effort)


def _short(room: Integers, kinds: Sequence[Kind], wanted: Mapping[int, int]) -> dict[int, int]:
    """Return the slots of each size, ascending, that has too few slots for all wanted pods."""
    largest = max((size for size, count in wanted.items() if count), default=0)
    found = {}
    for size in sorted(size for size in {*wanted, *(kind.accelerators for kind in kinds)} if size <= largest):
        slots = int((room // size).sum())
        if sum(count * (k // size) for k, count in wanted.items() if k >= size) > slots:
            found[size] = slots
    return found


class _States:
    """Nodes grouped by state, and states grouped by the ways they offer."""

    def __init__(self, free: Integers, movable: Integers, choices: Choices) -> None:
        first, self._state_of, counts = _alike(np.column_stack([free, movable]))
        self._choices = choices
        self._movable = movable[first].tolist()
        found = [choices.ways(*state) for state in zip(free[first].tolist(), self._movable, strict=True)]
        self._replicas = [tuple(replicas for _, replicas in own) for own in found]
        self.is_whole = choices.is_whole
        group_of: dict[tuple[Way, ...], int] = {}
        offered = [tuple(way for way, _ in own) for own in found]
        self._group_of = np.array(
            [group_of.setdefault(own, len(group_of)) for own in offered], dtype=np.int64
        )
        self.groups = [*group_of]
        """The ways of each group of states, the cheapest first."""
        self.nodes = np.bincount(self._group_of, weights=counts, minlength=len(group_of)).astype(int).tolist()
        """Number of nodes in each group."""

    def named(self, group: int, taken: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (node, kind, replicas) for the number of nodes that take each way, first nodes first."""
        nodes = np.flatnonzero(self._group_of[self._state_of] == group)[: sum(taken)]
        way_of = (way for way, count in enumerate(taken) for _ in range(count))
        for node, state, way in zip(nodes.tolist(), self._state_of[nodes].tolist(), way_of, strict=True):
            for kind, replicas in self._choices.evicted(self._replicas[state][way], self._movable[state]):
                yield node, kind, replicas


class _StateProgram:
    """The integer program: on how many nodes each way is taken, and how many pods of each size are placed."""

    def __init__(self, states: _States, wanted: Mapping[int, int], short: Mapping[int, int]) -> None:
        self._program = Program()
        self._states = states
        self._placed = {
            size: self._program.variables(1, count).start for size, count in sorted(wanted.items())
        }
        self._taken = [
            self._program.variables(len(ways), nodes)
            for ways, nodes in zip(states.groups, states.nodes, strict=True)
        ]
        self._numbered = [
            (variable, way)
            for ways, variables in zip(states.groups, self._taken, strict=True)
            for variable, way in zip(variables, ways, strict=True)
        ]
        for variables, nodes in zip(self._taken, states.nodes, strict=True):
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
            evicted=tuple(sorted((node, order[kind], n) for node, kind, n in self._named(result.values))),
            placed={size: result.values[variable] for size, variable in self._placed.items()},
            is_proven=result.is_optimal and self._states.is_whole,
        )

    def _named(self, values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        for group, variables in enumerate(self._taken):
            taken = [values[variable] for variable in variables]
            if any(taken):
                yield from self._states.named(group, taken)


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
