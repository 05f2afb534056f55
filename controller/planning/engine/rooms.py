"""Free accelerators and placed pods while pods are placed one by one on the fullest nodes.

Source: best-fit decreasing for bin packing (Johnson 1974). The fullest node that has room is taken, so that
empty nodes stay whole for large pods. The nodes of each bin are sorted by their free accelerators, and a
search in this order finds the node. Gangs take a block of nodes that holds all of their pods, again the
fullest one. Rules for pods are checked with each pod, because the domains that are open change with it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge

from controller.planning.engine.demands import pods_by_domain
from controller.planning.pod_rules import SpreadTerms, allowed_on_node
from controller.planning.problem import (
    NO_DOMAIN,
    PlacementProblem,
    VariantTerms,
    free_after_removals,
    staying_pods,
)


class Hosts:
    """The nodes of each bin by free accelerators; ties are broken by the lowest index."""

    def __init__(self, free: Sequence[int], bins: Mapping[int, Sequence[int]]) -> None:
        self.free = list(free)
        """Free accelerators of each node."""
        self._in_order = {bin_: sorted((free[node], node) for node in nodes) for bin_, nodes in bins.items()}
        self.bin_of = {node: bin_ for bin_, nodes in bins.items() for node in nodes}
        """The bin of each node that is in one."""

    def fullest(self, bins: Sequence[int], accelerators: int) -> int | None:
        """Return the fullest node of some bins with enough free accelerators, or None."""
        candidates = []
        for bin_ in bins:
            own = self._in_order[bin_]
            candidates += own[(at := bisect_left(own, (accelerators, 0))) : at + 1]
        return min(candidates)[1] if candidates else None

    def fullest_first(self, bins: Sequence[int], accelerators: int) -> Iterator[int]:
        """Yield the nodes of some bins with enough free accelerators; none may be taken meanwhile."""
        tails = []
        for bin_ in bins:
            own = self._in_order[bin_]
            tails.append(map(own.__getitem__, range(bisect_left(own, (accelerators, 0)), len(own))))
        for _, node in merge(*tails):
            yield node

    def take_many(
        self, bins: Sequence[int], accelerators: int, count: int, allowed: Callable[[int], int] | None = None
    ) -> list[tuple[int, int]]:
        """Take room for `count` units of a size, and return (node, units) for each node used.

        `allowed` returns how many units a node may get at most. The fullest node remains the fullest as long
        as it has room.
        """
        chosen: list[tuple[int, int]] = []
        for node in self.fullest_first(bins, accelerators) if count else ():
            units = min(count, self.free[node] // accelerators, allowed(node) if allowed else count)
            if units:
                chosen.append((node, units))
                count -= units
            if not count:
                break
        for node, units in chosen:
            self.take_on(node, units * accelerators)
        return chosen

    def take_on(self, node: int, accelerators: int) -> None:
        """Take accelerators on a node that has them, or return some if negative."""
        before, after = self.free[node], self.free[node] - accelerators
        self.free[node] = after
        if node in self.bin_of:
            own = self._in_order[self.bin_of[node]]
            own.pop(bisect_left(own, (before, node)))
            insort(own, (after, node))


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """New pods of one variant, and the bins they may use."""

    v: int
    """Index of the variant."""

    bins: tuple[int, ...]
    pods: int
    node: int | None = None
    """The only node that they may use; None if not decided yet."""


class Rooms:
    """Free accelerators and pods of each node during placement."""

    def __init__(
        self, problem: PlacementProblem, replicas: Sequence[int], *, is_spread: bool = False
    ) -> None:
        """Start after the removals that `replicas` implies; `problem` has no more nodes to add.

        With `is_spread`, domains are already decided: intermediate states may exceed the skew.
        """
        self._problem = problem
        self.is_spread = is_spread
        """Whether domains are already decided, so that the skew is not checked."""
        self.new = [Counter[int]() for _ in problem.variants]
        """The new pods on each node, by variant."""
        self._pods_on_node = {
            v: staying_pods(problem, v, replicas[v])
            for v, terms in enumerate(problem.variants)
            if terms.is_topology_constrained
        }
        nodes = {b: bin_.nodes for b, bin_ in enumerate(problem.bins)}
        self.hosts = Hosts(free_after_removals(problem, tuple(replicas)), nodes)
        self._blocks: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._block_rooms: dict[tuple[int, int, int], dict[int, int]] = {}

    def take_all(self, task: Task) -> bool:
        """Place as many of a task's pods as have room, and return whether all do."""
        terms = self._problem.variants[task.v]
        if terms.together is not None or (terms.spread is not None and not self.is_spread):
            step = min(terms.pods, task.pods)
            return all(self.take(task.v, task.bins, step) for _ in range(task.pods // step))
        allowed = partial(self._room_by_rules, task.v) if terms.most_per_node else None
        pods_by_node = dict(self.hosts.take_many(task.bins, terms.accelerators, task.pods, allowed))
        for node, pods in pods_by_node.items():
            self.new[task.v][node] += pods
            self._count(task.v, node, pods)
        placed = sum(pods_by_node.values())
        # With decided domains, the pods of a replica may be spread over several: each is placed singly.
        is_single = self.is_spread and terms.is_topology_constrained
        surplus = 0 if placed == task.pods or is_single else placed % terms.pods
        for node in reversed(pods_by_node):
            drop = min(surplus, pods_by_node[node])
            self.put(task.v, node, -drop)
            surplus -= drop
        return placed == task.pods

    def take(self, v: int, bins: Sequence[int], pods: int) -> list[int] | None:
        """Place pods of a variant, all or none, and return their nodes, or None."""
        terms = self._problem.variants[v]
        for nodes in self._choices(terms, bins):
            used_nodes: list[int] = []
            while len(used_nodes) < pods and (node := self._fullest(nodes, v, terms, bins)) is not None:
                self.put(v, node, 1)
                used_nodes.append(node)
            if len(used_nodes) == pods:
                return used_nodes
            for node in used_nodes:
                self.put(v, node, -1)
        return None

    def put(self, v: int, node: int, pods: int) -> None:
        """Add pods of a variant to a node, or remove some if negative."""
        self.new[v][node] += pods
        self._lay(v, node, pods)

    def keep(self, v: int, nodes: Sequence[int]) -> bool:
        """Keep a replica that leaves these nodes if its accelerators are still free; return whether so."""
        size = self._problem.variants[v].accelerators
        stays = all(self.hosts.free[node] >= size * pods for node, pods in Counter(nodes).items())
        for node in nodes if stays else ():
            self._lay(v, node, 1)
        return stays

    def _lay(self, v: int, node: int, pods: int) -> None:
        """Take room for pods on a node, or return it if negative, whether or not they are new."""
        self.hosts.take_on(node, pods * self._problem.variants[v].accelerators)
        self._count(v, node, pods)

    def _count(self, v: int, node: int, pods: int) -> None:
        """Count pods whose room was taken on a node."""
        if v in self._pods_on_node:
            self._pods_on_node[v][node] += pods
        self._count_blocks(node, -pods * self._problem.variants[v].accelerators)

    def _count_blocks(self, node: int, more: int) -> None:
        """Update the cached room of a node's domains after `more` accelerators became free on it."""
        free = self.hosts.free[node]
        for (bin_, topology, size), rooms in self._block_rooms.items():
            domain = self._problem.topologies[topology][node]
            if bin_ == self.hosts.bin_of.get(node) and domain in rooms:
                rooms[domain] += max(0, free) // size - max(0, free - more) // size

    def _choices(self, terms: VariantTerms, bins: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Yield sets of nodes that can each hold a whole gang, the fullest first; None for any node."""
        if terms.together is None:
            yield None
            return
        blocks = [
            (room, bin_, domain)
            for bin_ in bins
            for domain, room in self._rooms(bin_, terms.together, terms.accelerators).items()
            if room >= terms.pods
        ]
        for _, bin_, domain in sorted(blocks):
            yield self._nodes_in(bin_, terms.together)[domain]

    def _rooms(self, bin_: int, topology: int, accelerators: int) -> dict[int, int]:
        """Return how many pods of a size currently fit in each domain of a bin."""
        key = bin_, topology, accelerators
        if key not in self._block_rooms:
            self._block_rooms[key] = {
                domain: sum(max(0, self.hosts.free[node]) // accelerators for node in nodes)
                for domain, nodes in self._nodes_in(bin_, topology).items()
            }
        return self._block_rooms[key]

    def _nodes_in(self, bin_: int, topology: int) -> dict[int, list[int]]:
        key = bin_, topology
        if key not in self._blocks:
            nodes: dict[int, list[int]] = defaultdict(list)
            for node in self._problem.bins[bin_].nodes:
                if (domain := self._problem.topologies[topology][node]) != NO_DOMAIN:
                    nodes[domain].append(node)
            self._blocks[key] = nodes
        return self._blocks[key]

    def _fullest(
        self, nodes: Sequence[int] | None, v: int, terms: VariantTerms, bins: Sequence[int]
    ) -> int | None:
        """Return the fullest node among those that may take one more pod, or None."""
        open_bins = bins if terms.spread is None else self._open_bins(v, terms.spread, bins)
        if nodes is None and not terms.most_per_node:
            return self.hosts.fullest(open_bins, terms.accelerators)
        if nodes is None:
            candidates = self.hosts.fullest_first(open_bins, terms.accelerators)
            return next((node for node in candidates if self._room_by_rules(v, node) > 0), None)
        return min(
            (
                node
                for node in nodes
                if self.hosts.free[node] >= terms.accelerators
                and self._room_by_rules(v, node) > 0
                and self.hosts.bin_of[node] in open_bins
            ),
            key=lambda node: (self.hosts.free[node], node),
            default=None,
        )

    def _room_by_rules(self, v: int, node: int) -> int:
        """Return how many more pods of a variant fit on a node within its rules for nodes."""
        terms = self._problem.variants[v]
        room = max(0, self.hosts.free[node]) // terms.accelerators
        return allowed_on_node(terms.most_per_node, self._pods_on_node[v][node], room)

    def _open_bins(self, v: int, rule: SpreadTerms, bins: Sequence[int]) -> list[int]:
        """Return the bins in domains that may take one more pod; the nodes of a bin are in one domain."""
        if self.is_spread:
            return list(bins)
        domain_of = self._problem.topologies[rule.topology]
        is_open = rule.open_domains(pods_by_domain(self._problem, rule, self._pods_on_node[v]))
        return [b for b in bins if (own := self._problem.bins[b].nodes) and domain_of[own[0]] in is_open]
