"""Blocks of nodes, for pods that go together: the fullest block that has room for all of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controller.planning.problem import NO_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.resources import Resources
    from controller.planning.hosts import Hosts


class Blocks:
    """The nodes of each bin by block; what is taken is taken from the hosts."""

    def __init__(self, resources: Resources, hosts: Hosts) -> None:
        self._hosts = hosts
        self._nodes: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._home: dict[int, tuple[int, int]] = {}
        places = zip(resources.node_bin.tolist(), resources.node_block.tolist(), strict=True)
        for node, (bin_, block) in enumerate(places):
            if block != NO_DOMAIN:
                self._nodes[bin_][block].append(node)
                self._home[node] = bin_, block
        self._rooms: dict[tuple[int, int], dict[int, int]] = {}

    def take(self, bins: Sequence[int], accelerators: int, pods: int) -> list[int] | None:
        """Return a node for each of some pods, all in one block of one bin; None when no block has room."""
        self._count_again()
        rooms = [
            (room, bin_, block)
            for bin_ in bins
            for block, room in self._rooms_of(bin_, accelerators).items()
            if room >= pods
        ]
        if not rooms:
            return None
        _, bin_, block = min(rooms)
        return [self._take_one(self._nodes[bin_][block], accelerators) for _ in range(pods)]

    def _rooms_of(self, bin_: int, accelerators: int) -> dict[int, int]:
        """Return how many pods of a size each block of a bin has room for."""
        key = bin_, accelerators
        if key not in self._rooms:
            self._rooms[key] = {block: self._room(*key, block) for block in self._nodes[bin_]}
        return self._rooms[key]

    def _count_again(self) -> None:
        """Count the room of blocks anew in which something was taken."""
        for bin_, block in {self._home[node] for node in self._hosts.touched() if node in self._home}:
            for (other, accelerators), rooms in self._rooms.items():
                if other == bin_:
                    rooms[block] = self._room(bin_, accelerators, block)

    def _room(self, bin_: int, accelerators: int, block: int) -> int:
        free = self._hosts.free
        return sum(max(0, free[node]) // accelerators for node in self._nodes[bin_][block])

    def _take_one(self, nodes: Sequence[int], accelerators: int) -> int:
        """Take room on the fullest node that has enough."""
        free = self._hosts.free
        node = min((n for n in nodes if free[n] >= accelerators), key=lambda n: (free[n], n))
        self._hosts.take_on(node, accelerators)
        return node
