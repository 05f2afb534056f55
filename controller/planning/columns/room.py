"""What is left of the shared resources while one model after the other takes its part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.resources import NO_BIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
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

    def may_exchange(self, before: Asked, after: Asked) -> bool:
        """Tell at little cost whether there might be room for what one model asks now: if not, there is none.

        It may be told wrongly that there might: of several sizes each is looked at as if it came alone.
        """
        if len(before.leaving) or len(after.leaving) or self.addable.any():
            return True
        more = after.new[0] - before.new[0]
        fewer = np.minimum(more, 0)
        slots = self.slots - fewer @ self.resources.most_safe_uses
        for group in np.flatnonzero(more > 0).tolist():
            uses = self.resources.safe_uses[group][self.resources.allowed[group]]
            room = np.where(uses > 0, slots // np.maximum(uses, 1), more[group]).min(
                axis=1, initial=more[group]
            )
            if int(np.maximum(room, 0).sum()) < more[group]:
                return False
        return True

    def exchange(self, before: Sequence[Asked], after: Sequence[Asked]) -> bool:
        """Give back what was asked before and take what is asked now; without room nothing changes."""
        limits = self.limits + _limits(before) - _limits(after)
        if ((limits < 0) & (limits < self.limits)).any():
            return False
        kept = self.slots, self.addable, self.placed, self.free
        self.slots, self.addable, self.placed = self.slots.copy(), self.addable.copy(), self.placed.copy()
        self._vacate(before, after)
        more = _replicas(after) - _replicas(before)
        if not self._place(more) or (self.slots < 0).any():
            self.slots, self.addable, self.placed, self.free = kept
            return False
        self.limits = limits
        return True

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
        for bin_ in np.argsort(-self.bin_price[group], kind="stable").tolist():
            leaving = min(count, int(self.placed[group, bin_]))
            self.placed[group, bin_] -= leaving
            self.slots += leaving * self.resources.safe_uses[group, bin_]
            count -= leaving

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
            step = min(room, count - taken)
            self.slots -= step * uses
            taken += step
            if taken < count and not self._add_node(bin_, int(self.resources.sizes[group])):
                break
        self.placed[group, bin_] += taken
        return taken

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
