"""Blocks of nodes, for pods that go together: the fullest block that has room for all of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controller.planning.problem import NO_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.hosts import Hosts
    from controller.planning.columns.resources import Resources


class Blocks:
    """The nodes of each bin by block; what is taken is taken from the hosts."""

    def __init__(self, resources: Resources, hosts: Hosts) -> None:
        self._hosts = hosts
        self._nodes: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        places = zip(resources.node_bin.tolist(), resources.node_block.tolist(), strict=True)
        for node, (bin_, block) in enumerate(places):
            if block != NO_DOMAIN:
                self._nodes[bin_][block].append(node)

    def take(self, bins: Sequence[int], accelerators: int, pods: int) -> list[int] | None:
        """Return a node for each of some pods, all in one block of one bin; None when no block has room."""
        free = self._hosts.free
        rooms = [
            (room, bin_, block)
            for bin_ in bins
            for block, nodes in self._nodes[bin_].items()
            if (room := sum(max(0, free[node]) // accelerators for node in nodes)) >= pods
        ]
        if not rooms:
            return None
        _, bin_, block = min(rooms)
        return [self._take_one(self._nodes[bin_][block], accelerators) for _ in range(pods)]

    def _take_one(self, nodes: Sequence[int], accelerators: int) -> int:
        """Take room on the fullest node that has enough."""
        free = self._hosts.free
        node = min((n for n in nodes if free[n] >= accelerators), key=lambda n: (free[n], n))
        self._hosts.take_on(node, accelerators)
        return node
