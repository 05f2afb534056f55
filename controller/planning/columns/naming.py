"""From chosen columns to names of nodes: which new pod goes where, on nodes yet to come as well."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.blocks import Blocks
from controller.planning.columns.fitting import fit_replicas
from controller.planning.columns.program import Program
from controller.planning.hosts import Hosts
from controller.planning.lexicographic import NoSolutionError
from controller.planning.problem import NO_DOMAIN, freed, staying_pods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.fitting import Fitting
    from controller.planning.columns.resources import Resources
    from controller.planning.lexicographic import Limits
    from controller.planning.problem import PlacementProblem

    Named = tuple[tuple[int, int, int], ...]
    Asks = Mapping[tuple[int, int], int]
    """(variant, class) -> new ones, in what the class counts."""

    Lying = defaultdict[int, Counter[int]]
    """Variant -> pods on each node."""

FORCED = 10.0
"""Deterministic seconds that finding places may take: counts that have them are worth it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where new pods go."""

    placements: Named
    """(variant, node, pods), sorted."""

    grown: Named = ()
    """(variant, growth, pods), sorted: those on nodes that are yet to be added."""

    added: tuple[int, ...] = ()
    """Per growth: how many of its nodes they are on."""


def name_nodes(
    problem: PlacementProblem,
    resources: Resources,
    replicas: Sequence[int],
    asks: Asks,
    *,
    added: Integers,
    limits: Limits,
) -> Places | None:
    """Return a node for every new pod; None if none was found, which proves nothing where pods have rules.

    Raises NoSolutionError when the limits are too tight to tell.
    """
    naming = _Naming(problem, _after(problem, resources, replicas, added), replicas)
    named = naming.fill(asks)
    if named is None:
        named = naming.by_program(asks, limits)
    return _split(named, problem, added) if named is not None else None


def _after(
    problem: PlacementProblem, resources: Resources, replicas: Sequence[int], added: Integers
) -> Resources:
    """Return the resources once replicas have gone and nodes were added, which stand behind the others."""
    more = np.repeat(np.arange(len(added)), added)
    free = np.concatenate(
        [np.array(freed(problem, tuple(replicas)), dtype=np.int64), resources.growth_size[more]]
    )
    node_bin = np.concatenate([resources.node_bin, resources.growth_bin[more]])
    node_block = np.concatenate([resources.node_block, np.full_like(more, NO_DOMAIN)])
    none = np.zeros(0, dtype=np.int64)
    return replace(
        resources,
        free=free,
        node_bin=node_bin,
        node_block=node_block,
        slots=resources.slots_with(free, node_bin, node_block),
        growth_bin=none,
        growth_size=none,
        growth_limit=none,
        growth_slots=none.reshape(0, len(resources.row_bin)),
    )


class _Naming:
    """Names nodes by what is free on them once those have gone that go."""

    def __init__(self, problem: PlacementProblem, after: Resources, replicas: Sequence[int]) -> None:
        self._after = after
        self._most_per_node = {
            v: terms.most_per_node
            for v, terms in enumerate(problem.variants)
            if terms.most_per_node is not None
        }
        self._lying = {v: staying_pods(problem, v, replicas[v]) for v in self._most_per_node}
        self._bins = {
            bin_: np.flatnonzero(after.node_bin == bin_).tolist() for bin_ in range(after.allowed.shape[1])
        }

    def fill(self, asks: Asks) -> Lying | None:
        """Place the largest first, then those with least choice; None proves nothing where bins overlap."""
        choice = [np.flatnonzero(row).tolist() for row in self._after.allowed]
        return self._put(
            [
                (choice[group], v, group, count)
                for (v, group), count in sorted(asks.items(), key=lambda ask: self._turn(ask[0], choice))
            ],
            Hosts(self._after.free.tolist(), self._bins),
            defaultdict[int, Counter[int]](Counter),
        )

    def _put(
        self, asked: Sequence[tuple[Sequence[int], int, int, int]], hosts: Hosts, named: Lying
    ) -> Lying | None:
        """Place (bins, variant, class, count) one after the other; None if one finds no place."""
        together = any(self._after.pods[group] > 1 for _, _, group, _ in asked)
        blocks = Blocks(self._after, hosts) if together else None
        for bins, v, group, count in asked:
            size, pods = int(self._after.sizes[group]), int(self._after.pods[group])
            if pods == 1 and v not in self._most_per_node:
                found = dict(hosts.take_many(bins, size, count))
                if sum(found.values()) < count:
                    return None
                named[v].update(found)
                continue
            for _ in range(count):
                if blocks and pods > 1:
                    nodes = blocks.take(bins, size, pods)
                else:
                    node = hosts.take(bins, size, self._full(named, v))
                    nodes = None if node is None else [node]
                if nodes is None:
                    return None
                named[v].update(nodes)
        return named

    def by_program(self, asks: Asks, limits: Limits) -> Lying | None:
        """Divide each class among its bins, and pack nodes by patterns, by a small integer program."""
        program = Program()
        one = program.constant()
        counts = np.zeros(len(self._after.sizes), dtype=np.int64)
        for (_, group), count in asks.items():
            counts[group] += count
        asked = [[(one, count)] for count in counts.tolist()]
        fitting = fit_replicas(program, self._after, asked=asked, leaving={}, growth=())
        result = program.solve(replace(limits, deterministic_seconds=FORCED))
        if result.is_infeasible:
            return None
        if not result.values:
            raise NoSolutionError("the replicas that were chosen could not be placed in time")
        named = self._read(asks, fitting, result.values)
        return None if named is None or any(self._is_overfull(named, v) for v in named) else named

    def _turn(self, key: tuple[int, int], choice: Sequence[Sequence[int]]) -> tuple[int, int, int, bool, int]:
        """Return when to place (variant, class): the largest first, then those with least choice."""
        v, group = key
        size = int(self._after.sizes[group])
        is_free = v not in self._most_per_node
        return -size * int(self._after.pods[group]), -size, len(choice[group]), is_free, v

    def _full(self, named: Lying, v: int) -> frozenset[int]:
        """Return the nodes that may take no more pods of a variant, whatever room they have."""
        most = self._most_per_node.get(v)
        if most is None:
            return frozenset()
        lying = self._lying[v] + named[v]
        return frozenset(node for node, pods in lying.items() if pods >= most)

    def _is_overfull(self, named: Lying, v: int) -> bool:
        most = self._most_per_node.get(v)
        return most is not None and any(self._lying[v][n] + count > most for n, count in named[v].items())

    def _read(self, asks: Asks, fitting: Fitting, values: Sequence[int]) -> Lying | None:
        """Name the nodes: by the patterns where there are any, else the largest first."""
        hosts, named = Hosts(self._after.free.tolist(), self._bins), defaultdict[int, Counter[int]](Counter)
        waiting = self._waiting(asks, fitting, values)
        for (bin_, room, pattern), variable in fitting.patterns.items():
            for _ in range(values[variable]):
                lying = [left.pop() for size in pattern if (left := self._next(waiting, bin_, size))]
                if lying:
                    node = hosts.take_of_kind(bin_, room, room)
                    for v in lying:
                        named[v][node] += 1
        self._follow(fitting, values, waiting, hosts, named)
        # Classes are in the order of how hard they are to place.
        rest = sorted(waiting.items(), key=lambda item: -item[0][1])
        return self._put(
            [([bin_], v, group, 1) for (bin_, group), queue in rest for v in queue], hosts, named
        )

    def _follow(
        self,
        fitting: Fitting,
        values: Sequence[int],
        waiting: Mapping[tuple[int, int], list[int]],
        hosts: Hosts,
        named: Lying,
    ) -> None:
        """Place pods where the program says on which node they lie; those that go together block by block."""
        blocks: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for (group, node), variable in fitting.on_node.items():
            block = int(self._after.node_block[node])
            blocks[int(self._after.node_bin[node]), group, block] += [node] * values[variable]
        for (bin_, group, _), nodes in blocks.items():
            queue, pods = waiting.get((bin_, group), []), int(self._after.pods[group])
            while queue and len(nodes) >= pods:
                v = queue.pop()
                for node in (nodes.pop() for _ in range(pods)):
                    hosts.take_on(node, int(self._after.sizes[group]))
                    named[v][node] += 1

    def _next(self, waiting: Mapping[tuple[int, int], list[int]], bin_: int, size: int) -> list[int]:
        """Return who waits for a place of a size in a bin."""
        return next(
            (
                queue
                for (where, group), queue in waiting.items()
                if queue and where == bin_ and self._after.sizes[group] == size
            ),
            [],
        )

    def _waiting(
        self, asks: Asks, fitting: Fitting, values: Sequence[int]
    ) -> dict[tuple[int, int], list[int]]:
        """Return the variants whose new ones go to each bin, by class: one entry for each."""
        left = {key: sum(values[v] * weight for v, weight in terms) for key, terms in fitting.flows.items()}
        waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (v, group), count in sorted(asks.items()):
            missing = count
            for bin_ in np.flatnonzero(self._after.allowed[group]).tolist():
                here = min(missing, left[group, bin_])
                waiting[bin_, group] += [v] * here
                left[group, bin_] -= here
                missing -= here
        return waiting


def _split(named: Lying, problem: PlacementProblem, added: Integers) -> Places:
    """Tell places on nodes from those on nodes to be added, of which only those are that somebody needs."""
    nodes = len(problem.free)
    growth = np.repeat(np.arange(len(added)), added).tolist()
    grown: Counter[tuple[int, int]] = Counter()
    placed = [(v, node, count) for v, at in named.items() for node, count in at.items()]
    for v, node, count in placed:
        if node >= nodes:
            grown[v, growth[node - nodes]] += count
    needed = Counter(growth[node - nodes] for node in {node for _, node, _ in placed if node >= nodes})
    return Places(
        placements=tuple(sorted(place for place in placed if place[1] < nodes)),
        grown=tuple(sorted((v, g, count) for (v, g), count in grown.items())),
        added=tuple(needed[index] for index in range(len(added))),
    )
