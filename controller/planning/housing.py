"""As many replicas as find a place, one after the other: for counts that nobody has fitted to the nodes.

Each goes to the fullest node that has room and that its variant's rules admit; the largest come first. What
finds no place is left out. That is never wrong, and not always the most that is possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.hosts import Hosts
from controller.planning.problem import NO_DOMAIN, bins_of, freed, staying_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.problem import PlacementProblem, Solution, VariantTerms


@dataclass(frozen=True, kw_only=True, slots=True)
class Housed:
    """What found a place."""

    replicas: tuple[int, ...]
    placements: tuple[tuple[int, int, int], ...]
    """(variant, node, pods), sorted."""

    grown: tuple[tuple[int, int, int], ...]
    """(variant, growth, pods), sorted: on nodes that are yet to be added."""


def house(
    problem: PlacementProblem,
    replicas: Sequence[int],
    *,
    added: Sequence[int] = (),
    order: Sequence[int] | None = None,
) -> Housed:
    """Return the replicas that stay and those that find a place, given nodes to add per growth.

    `order` says who comes first; without it the largest do.
    """
    rooms = _Rooms(problem, replicas, added)
    found = list(replicas)
    largest_first = sorted(
        range(len(replicas)), key=lambda v: (-problem.variants[v].accelerators_per_replica, v)
    )
    for v in largest_first if order is None else order:
        terms = problem.variants[v]
        if terms.accelerators and replicas[v] > len(terms.bound):
            new = 0
            while len(terms.bound) + new < replicas[v] and rooms.take(v):
                new += 1
            found[v] = len(terms.bound) + new
    return rooms.housed(tuple(found))


class Vacancies:
    """Where more replicas find places beside an answer."""

    def __init__(self, problem: PlacementProblem, solution: Solution) -> None:
        self._rooms = _Rooms(problem, solution.replicas, solution.added)
        for v, node, pods in solution.placements:
            self._rooms.put(v, node, pods)

    def has_room_for_one(self, variant: int) -> bool:
        """Tell whether one more replica of a variant finds a place."""
        taken = self._rooms.take(variant)
        for node in taken or ():
            self._rooms.put(variant, node, -1)
        return taken is not None


class _Rooms:
    """What is free, and what lies where, while pods are placed."""

    def __init__(self, problem: PlacementProblem, replicas: Sequence[int], added: Sequence[int]) -> None:
        self._problem = problem
        growth = [
            (g, terms) for g, terms in enumerate(problem.growth) for _ in range(added[g] if added else 0)
        ]
        self._growth = [g for g, _ in growth]
        self._lying = [staying_pods(problem, v, count) for v, count in enumerate(replicas)]
        self._new = [Counter[int]() for _ in problem.variants]
        self._nodes = [list(bin_.nodes) for bin_ in problem.bins]
        for turn, (_, terms) in enumerate(growth):
            self._nodes[terms.bin].append(len(problem.free) + turn)
        free = [*freed(problem, tuple(replicas)), *(terms.accelerators for _, terms in growth)]
        self._hosts = Hosts(free, dict(enumerate(self._nodes)))
        self._bin_of = {node: b for b, nodes in enumerate(self._nodes) for node in nodes}
        self._bins = bins_of(problem)
        self._blocks: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._block_rooms: dict[tuple[int, int, int], dict[int, int]] = {}

    def take(self, v: int) -> list[int] | None:
        """Return the nodes that the pods of one more replica take; None, and nothing taken, without room."""
        terms = self._problem.variants[v]
        for nodes in self._choices(v, terms):
            taken: list[int] = []
            while len(taken) < terms.pods and (node := self._fullest(nodes, v, terms)) is not None:
                self.put(v, node, 1)
                taken.append(node)
            if len(taken) == terms.pods:
                return taken
            for node in taken:
                self.put(v, node, -1)
        return None

    def housed(self, replicas: tuple[int, ...]) -> Housed:
        """Return what was placed."""
        nodes = len(self._problem.free)
        placed = [(v, node, n) for v, at in enumerate(self._new) for node, n in at.items() if n]
        grown = Counter[tuple[int, int]]()
        for v, node, count in placed:
            if node >= nodes:
                grown[v, self._growth[node - nodes]] += count
        return Housed(
            replicas=replicas,
            placements=tuple(sorted(place for place in placed if place[1] < nodes)),
            grown=tuple(sorted((v, g, count) for (v, g), count in grown.items())),
        )

    def put(self, v: int, node: int, pods: int) -> None:
        """Let pods of a variant lie on a node."""
        before = self._hosts.free[node]
        self._hosts.take_on(node, pods * self._problem.variants[v].accelerators)
        self._new[v][node] += pods
        self._lying[v][node] += pods
        for (bin_, topology, size), rooms in self._block_rooms.items():
            if bin_ == self._bin_of[node] and (domain := self._domain(topology, node)) in rooms:
                rooms[domain] += max(0, self._hosts.free[node]) // size - max(0, before) // size

    def _choices(self, v: int, terms: VariantTerms) -> Iterator[Sequence[int] | None]:
        """Yield sets of nodes of which one has to hold a whole replica, those with the least room first.

        None stands for all nodes of the variant's bins.
        """
        if terms.together is None:
            yield None
            return
        blocks = [
            (room, bin_, domain)
            for bin_ in self._bins[v]
            for domain, room in self._rooms(bin_, terms.together, terms.accelerators).items()
            if room >= terms.pods
        ]
        for _, bin_, domain in sorted(blocks):
            yield self._in_domains(bin_, terms.together)[domain]

    def _rooms(self, bin_: int, topology: int, accelerators: int) -> dict[int, int]:
        """Return how many pods of a size each domain of a bin has room for, as things stand."""
        key = bin_, topology, accelerators
        if key not in self._block_rooms:
            free = self._hosts.free
            self._block_rooms[key] = {
                domain: sum(max(0, free[node]) // accelerators for node in nodes)
                for domain, nodes in self._in_domains(bin_, topology).items()
            }
        return self._block_rooms[key]

    def _in_domains(self, bin_: int, topology: int) -> dict[int, list[int]]:
        """Return the nodes of each domain of a bin, but for those that are yet to be added."""
        key = bin_, topology
        if key not in self._blocks:
            nodes: dict[int, list[int]] = defaultdict(list)
            for node in self._nodes[bin_]:
                if node < len(self._problem.free) and (domain := self._domain(topology, node)) != NO_DOMAIN:
                    nodes[domain].append(node)
            self._blocks[key] = nodes
        return self._blocks[key]

    def _fullest(self, nodes: Sequence[int] | None, v: int, terms: VariantTerms) -> int | None:
        """Return the node with the least room among those that may take one more pod."""
        if nodes is None and terms.most_per_node is None and terms.spread is None:
            return self._hosts.fullest(self._bins[v], terms.accelerators)
        open_domains = self._open_domains(v, terms)
        free = self._hosts.free
        return min(
            (
                node
                for node in (self._all_nodes(v) if nodes is None else nodes)
                if free[node] >= terms.accelerators
                and (terms.most_per_node is None or self._lying[v][node] < terms.most_per_node)
                and (terms.spread is None or self._domain(terms.spread.topology, node) in open_domains)
            ),
            key=lambda node: (free[node], node),
            default=None,
        )

    def _all_nodes(self, v: int) -> Iterator[int]:
        return (node for bin_ in self._bins[v] for node in self._nodes[bin_])

    def _open_domains(self, v: int, terms: VariantTerms) -> frozenset[int]:
        """Return the domains that may have one more pod."""
        if terms.spread is None:
            return frozenset()
        counts = dict.fromkeys(terms.spread.domains, 0)
        for node, pods in self._lying[v].items():
            domain = self._domain(terms.spread.topology, node)
            if domain in counts:
                counts[domain] += pods
        least = min(counts.values(), default=0)
        return frozenset(d for d, pods in counts.items() if pods + 1 - least <= terms.spread.max_skew)

    def _domain(self, topology: int, node: int) -> int:
        known = self._problem.topologies[topology]
        if node < len(known):
            return known[node]
        return self._problem.growth[self._growth[node - len(known)]].domains[topology]
