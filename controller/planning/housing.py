"""As many replicas as find a place, one after the other: for counts that nobody has fitted to the nodes.

Each goes to the fullest node that has room and that its variant's rules admit; the largest come first. What
finds no place is left out. That is never wrong, and not always the most that is possible.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.problem import NO_DOMAIN, freed, staying_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        self._free = [*freed(problem, tuple(replicas)), *(terms.accelerators for _, terms in growth)]
        self._lying = [staying_pods(problem, v, count) for v, count in enumerate(replicas)]
        self._new = [Counter[int]() for _ in problem.variants]
        self._nodes: list[list[int]] = [[] for _ in problem.variants]
        self._bin_of: dict[int, int] = {}
        for b, bin_ in enumerate(problem.bins):
            more = [len(problem.free) + turn for turn, (_, terms) in enumerate(growth) if terms.bin == b]
            self._bin_of.update(dict.fromkeys((*bin_.nodes, *more), b))
            for v in bin_.variants:
                self._nodes[v] += (*bin_.nodes, *more)

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
        self._free[node] -= pods * self._problem.variants[v].accelerators
        self._new[v][node] += pods
        self._lying[v][node] += pods

    def _choices(self, v: int, terms: VariantTerms) -> Iterable[Sequence[int]]:
        """Return sets of nodes of which one has to hold a whole replica, those with the least room first."""
        if terms.together is None:
            return [self._nodes[v]]
        blocks: dict[tuple[int, int], list[int]] = {}
        for node in (node for node in self._nodes[v] if node < len(self._problem.free)):
            key = self._bin_of[node], self._domain(terms.together, node)
            if key[1] != NO_DOMAIN:
                blocks.setdefault(key, []).append(node)
        rooms = {
            key: sum(max(0, self._free[n]) // terms.accelerators for n in own) for key, own in blocks.items()
        }
        return [
            blocks[key]
            for key in sorted(blocks, key=lambda key: (rooms[key], key))
            if rooms[key] >= terms.pods
        ]

    def _fullest(self, nodes: Sequence[int], v: int, terms: VariantTerms) -> int | None:
        """Return the node with the least room among those that may take one more pod."""
        open_domains = self._open_domains(v, terms)
        return min(
            (
                node
                for node in nodes
                if self._free[node] >= terms.accelerators
                and (terms.most_per_node is None or self._lying[v][node] < terms.most_per_node)
                and (terms.spread is None or self._domain(terms.spread.topology, node) in open_domains)
            ),
            key=lambda node: (self._free[node], node),
            default=None,
        )

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
