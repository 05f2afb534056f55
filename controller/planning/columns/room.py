"""What is left of the shared resources while one model after the other takes its part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.resources import NO_BIN
from controller.planning.problem import UNLIMITED_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.asked import Asked
    from controller.planning.columns.resources import Resources


@dataclass(kw_only=True, slots=True)
class Room:
    """Slots and limits that are left; nodes are added where there are no slots otherwise."""

    resources: Resources
    bin_price: Floats
    """(classes, bins): where to go first; infinite where a class may not go."""

    slots: Integers = field(init=False)
    limits: Integers = field(init=False)
    addable: Integers = field(init=False)
    """(growths,): nodes that can still be added."""

    placed: Integers = field(init=False)
    """(classes, bins): replicas that have room."""

    free: Integers = field(init=False)
    """(nodes,): without the new replicas."""

    def __post_init__(self) -> None:
        """Begin with everything that is free now."""
        self.slots = self.resources.slots
        self.limits = self.resources.limits
        self.addable = self.resources.growth_limit
        self.placed = np.zeros(self.bin_price.shape, dtype=np.int64)
        self.free = self.resources.free

    def may_exchange(self, before: Asked, after: Asked) -> Booleans:
        """(k,): whether there might be room for what a column of one model asks, at little cost: or never.

        It may be told wrongly that there might: each class is looked at as if it came alone.
        """
        limits = self.limits + before.limits[0] - after.limits
        may: Booleans = ((limits >= 0) | (limits >= self.limits)).all(axis=1)
        if len(before.leaving) or self.addable.any():
            return may
        most = self._most_alone(self.slots + before.new[0] @ self.resources.most_safe_uses)
        has_room = (after.new <= np.maximum(most, before.new[0])).all(axis=1)
        has_room[after.leaving[:, 0]] = True
        may &= has_room
        return may

    def _most_alone(self, slots: Integers) -> Integers:
        """Return how many replicas of each class have room where nothing else comes, (classes,)."""
        uses, starts = self.resources.own_safe_uses, self.resources.bin_starts
        if not len(starts):
            return np.zeros(len(uses), dtype=np.int64)
        per_row = np.where(uses > 0, np.maximum(slots, 0) // np.maximum(uses, 1), UNLIMITED_REPLICAS)
        per_bin = np.minimum.reduceat(per_row, starts, axis=1)
        bins = self.resources.row_bin[starts]
        most: Integers = np.where(self.resources.allowed[:, bins], per_bin, 0).sum(axis=1)
        return most

    def exchange(self, before: Sequence[Asked], after: Sequence[Asked]) -> bool:
        """Give back what was asked before and take what is asked now; without room nothing changes."""
        more = _replicas(after) - _replicas(before)
        return self._tried(before, after, lambda: self._place(more))

    def adopt(
        self, before: Sequence[Asked], after: Sequence[Asked], *, placed: Integers, added: Integers
    ) -> bool:
        """Exchange likewise, where all that is asked has its places already, some of them on added nodes.

        It can be in vain although that is a solution: sizes that do not divide each other are counted with
        care.
        """
        return self._tried(before, after, lambda: self._put(placed, added))

    def _tried(self, before: Sequence[Asked], after: Sequence[Asked], change: Callable[[], bool]) -> bool:
        """Change what is placed, with limits and who leaves; tell whether there was room, or undo it."""
        limits = self.limits + _limits(before) - _limits(after)
        if ((limits < 0) & (limits < self.limits)).any():
            return False
        kept = self.slots, self.addable, self.placed, self.free
        self.slots, self.addable, self.placed = self.slots.copy(), self.addable.copy(), self.placed.copy()
        self._vacate(before, after)
        if not change() or (self.slots < 0).any():
            self.slots, self.addable, self.placed, self.free = kept
            return False
        self.limits = limits
        return True

    def _put(self, placed: Integers, added: Integers) -> bool:
        """Let replicas be where they are placed; tell whether so many nodes can be added."""
        resources = self.resources
        more = added - (resources.growth_limit - self.addable)
        self.slots += more @ resources.growth_slots
        self.slots -= np.tensordot(placed - self.placed, resources.safe_uses, axes=2)
        self.addable, self.placed = self.addable - more, placed.copy()
        return bool((self.addable >= 0).all())

    def _vacate(self, before: Sequence[Asked], after: Sequence[Asked]) -> None:
        """Count the slots of nodes anew where other replicas leave than before."""
        if not any(len(asked.leaving) for asked in (*before, *after)):
            return
        free = self.free.copy()
        for asked in before:
            np.subtract.at(free, asked.leaving[:, 1], asked.leaving[:, 2])
        for asked in after:
            np.add.at(free, asked.leaving[:, 1], asked.leaving[:, 2])
        bins = self.resources.node_bin
        changed = np.flatnonzero((free != self.free) & (bins != NO_BIN))
        for bin_ in np.unique(bins[changed]).tolist():
            nodes = changed[bins[changed] == bin_]
            rows = (self.resources.row_bin == bin_) & (self.resources.row_pods == 1)
            size = self.resources.row_size[rows][:, None]
            was, now = np.maximum(self.free[nodes], 0), np.maximum(free[nodes], 0)
            self.slots[rows] += (now // size - was // size).sum(axis=1)
        if self.resources.has_blocks:
            blocks = np.isin(self.resources.row_bin, bins[changed]) & (self.resources.row_pods > 1)
            self.slots[blocks] += self._blocks(free)[blocks] - self._blocks(self.free)[blocks]
        self.free = free

    def _blocks(self, free: Integers) -> Integers:
        return self.resources.slots_with(free, self.resources.node_bin, self.resources.node_block)

    def _place(self, more: Integers) -> bool:
        """Give back the room of fewer replicas per class and take that of more; tell whether all found it."""
        for group in np.flatnonzero(more < 0).tolist():
            self._give(group, -int(more[group]))
        largest_first = np.flatnonzero(more > 0)[::-1].tolist()
        return all(self._take(group, int(more[group])) for group in largest_first)

    def _give(self, group: int, count: int) -> None:
        """Give back the room of replicas of one class, from the dearest bins first."""
        held = np.flatnonzero(self.placed[group])
        for bin_ in held[np.argsort(-self.bin_price[group, held], kind="stable")].tolist():
            leaving = min(count, int(self.placed[group, bin_]))
            self.placed[group, bin_] -= leaving
            self.slots += leaving * self.resources.safe_uses[group, bin_]
            count -= leaving
            if not count:
                break

    def _take(self, group: int, count: int) -> bool:
        """Take room for replicas of one class, the cheapest bins first; tell whether all found it."""
        for bin_ in np.argsort(self.bin_price[group], kind="stable").tolist():
            if not count or not self.resources.allowed[group, bin_]:
                break
            count -= self._take_in(group, bin_, count)
        return not count

    def _take_in(self, group: int, bin_: int, count: int) -> int:
        """Take room for replicas in one bin, adding nodes as needed; return how many found it."""
        uses = self.resources.safe_uses[group, bin_]
        rows = uses > 0
        taken = 0
        while taken < count:
            room = max(0, int((self.slots[rows] // uses[rows]).min()))
            step = max(0, min(room, count - taken, self._most(group, bin_) - taken))
            self.slots -= step * uses
            taken += step
            if taken < count and not self._add_node(bin_, int(self.resources.sizes[group])):
                break
        self.placed[group, bin_] += taken
        return taken

    def _most(self, group: int, bin_: int) -> int:
        """Return how many more replicas of a class a bin's nodes may have, were nothing else new there."""
        resources = self.resources
        if group not in resources.apart:
            return UNLIMITED_REPLICAS
        nodes = np.flatnonzero(resources.node_bin == bin_)
        room = np.maximum(0, self.free[nodes]) // resources.sizes[group]
        own = int(np.minimum(room, resources.most_on_nodes(group, nodes)).sum())
        most, _ = resources.apart[group]
        here = resources.growth_bin == bin_
        grown = np.minimum(most, resources.growth_size[here] // resources.sizes[group])
        added = (resources.growth_limit - self.addable)[here]
        return own + int((added * grown).sum()) - int(self.placed[group, bin_])

    def _add_node(self, bin_: int, size: int) -> bool:
        """Add the cheapest node of a bin that has room for a replica; tell whether there was one."""
        resources = self.resources
        useful = (self.addable > 0) & (resources.growth_bin == bin_) & (resources.growth_size >= size)
        if not useful.any():
            return False
        candidates = np.flatnonzero(useful)
        added = candidates[np.argmin(resources.growth_price[candidates])]
        self.addable[added] -= 1
        self.slots += resources.growth_slots[added]
        return True


def _limits(asked: Sequence[Asked]) -> Integers:
    total: Integers = np.concatenate([part.limits for part in asked]).sum(axis=0)
    return total


def _replicas(asked: Sequence[Asked]) -> Integers:
    total: Integers = np.concatenate([part.new for part in asked]).sum(axis=0)
    return total
