"""Node assignment: which node each new pod goes to, once replicas are chosen.

Best-fit decreasing comes first: the largest units go first, each to the fullest node that may take it. Where
sizes divide each other, that finds a place for everything that has one. Where some unit finds none, a
feasibility program decides, by the same rows as the core's.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.planning.cpsat import Program
from controller.planning.engine.demands import NewReplicas, demands_of
from controller.planning.engine.fit import Fit
from controller.planning.engine.shared import nodes_of
from controller.planning.hosts import Hosts
from controller.planning.problem import NO_DOMAIN, bins_of, freed, staying_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.cpsat import Limits, Terms
    from controller.planning.engine.demands import Demand
    from controller.planning.engine.fit import Fitting
    from controller.planning.problem import PlacementProblem, SpreadTerms, VariantTerms

    Placements = tuple[tuple[int, int, int], ...]
    """(variant, node or growth, pods), sorted."""

FEASIBILITY_SECONDS = 10.0
"""Deterministic time that finding places may take: counts that have them are worth it."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Where new pods go, and which replicas have places for all of their pods."""

    replicas: tuple[int, ...]
    """Per variant: its replicas, without those whose pods found no place."""

    placements: Placements
    """(variant, node, pods), sorted."""

    grown: Placements
    """(variant, growth, pods), sorted: on nodes that are yet to be added."""

    added: tuple[int, ...]
    """Nodes to add, per growth: those that pods go to."""


def assign(
    problem: PlacementProblem, replicas: Sequence[int], added: Sequence[int], limits: Limits
) -> Assignment:
    """Return a node for every new pod of some replicas, or of as many as find one."""
    whole = with_added(problem, added)
    tasks = [
        _Task(v=v, bins=tuple(bins), pods=(count - len(terms.bound)) * terms.pods)
        for v, (count, terms, bins) in enumerate(
            zip(replicas, problem.variants, bins_of(problem), strict=True)
        )
        if terms.accelerators and count > len(terms.bound)
    ]
    rooms, has_all = Rooms(whole, replicas), True
    for task in sorted(tasks, key=lambda task: _turn(problem, task)):
        # Every task is tried, also after one has failed: as many replicas as possible are to have places.
        if not rooms.take_all(task):
            has_all = False
    if has_all:
        return _assignment(problem, tuple(replicas), rooms, added)
    found = _by_program(problem, whole, replicas, limits)
    if found is not None and _placed(problem, replicas, found) == tuple(replicas):
        return _assignment(problem, tuple(replicas), found, added)
    return _assignment(problem, _placed(problem, replicas, rooms), rooms, added)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Task:
    """New pods of one variant, and where they may go."""

    v: int
    """Index of the variant."""

    bins: tuple[int, ...]
    pods: int
    node: int | None = None
    """The only node that they may go to; None where it is not decided yet."""


def _turn(problem: PlacementProblem, task: _Task) -> tuple[int, int, int, int]:
    """Return when to place a task: the largest units first, then those with the least choice."""
    terms = problem.variants[task.v]
    total = terms.accelerators * (terms.pods if terms.together is not None else 1)
    return -total, -terms.accelerators, len(task.bins) - terms.is_topology_constrained, task.v


def with_added(problem: PlacementProblem, added: Sequence[int]) -> PlacementProblem:
    """Return the problem with so many nodes added of each growth, behind the others."""
    growth = [g for g, count in zip(problem.growth, added, strict=True) for _ in range(count)]
    if not growth:
        return replace(problem, growth=())
    nodes = [list(bin_.nodes) for bin_ in problem.bins]
    for number, terms in enumerate(growth, start=len(problem.free)):
        nodes[terms.bin].append(number)
    return replace(
        problem,
        free=(*problem.free, *(terms.accelerators for terms in growth)),
        bins=tuple(replace(bin_, nodes=tuple(own)) for bin_, own in zip(problem.bins, nodes, strict=True)),
        growth=(),
        topologies=tuple(
            (*domains, *(terms.domains[t] if terms.domains else NO_DOMAIN for terms in growth))
            for t, domains in enumerate(problem.topologies)
        ),
    )


def _placed(problem: PlacementProblem, replicas: Sequence[int], rooms: Rooms) -> tuple[int, ...]:
    """Return the replicas of which all pods have a place."""
    new = [rooms.new[v].total() // terms.pods for v, terms in enumerate(problem.variants)]
    return tuple(
        min(count, len(terms.bound) + here) if terms.accelerators else count
        for count, terms, here in zip(replicas, problem.variants, new, strict=True)
    )


def _assignment(
    problem: PlacementProblem, replicas: tuple[int, ...], rooms: Rooms, added: Sequence[int]
) -> Assignment:
    """Return the assignment of what was placed; `added` are the nodes that were added of each growth."""
    nodes = len(problem.free)
    origin = [g for g, count in enumerate(added) for _ in range(count)]
    placed = [(v, node, pods) for v, at in enumerate(rooms.new) for node, pods in at.items() if pods]
    grown = Counter[tuple[int, int]]()
    for v, node, pods in placed:
        if node >= nodes:
            grown[v, origin[node - nodes]] += pods
    used = Counter(origin[node - nodes] for node in {node for _, node, _ in placed if node >= nodes})
    return Assignment(
        replicas=replicas,
        placements=tuple(sorted(place for place in placed if place[1] < nodes)),
        grown=tuple(sorted((v, g, pods) for (v, g), pods in grown.items())),
        added=tuple(used[g] for g in range(len(problem.growth))),
    )


def _by_program(
    problem: PlacementProblem, whole: PlacementProblem, replicas: Sequence[int], limits: Limits
) -> Rooms | None:
    """Return where new pods go by a feasibility program; None where it proves that not all have a place."""
    program = Program()
    one = program.constant()
    new = {
        v: NewReplicas(terms=[(one, count - len(terms.bound))], most=count - len(terms.bound))
        for v, (count, terms) in enumerate(zip(replicas, problem.variants, strict=True))
        if terms.accelerators and count > len(terms.bound)
    }
    free = freed(whole, tuple(replicas))
    demands, parts, _ = demands_of(program, whole, new, is_decided=True)
    fitting = Fit(program, whole, nodes_of(whole), leaving={}, growth=(), free=free).add(demands)
    result = program.solve(replace(limits, deterministic_seconds=FEASIBILITY_SECONDS))
    if not result.values:
        return None
    rooms = Rooms(whole, replicas, is_spread=True)
    tasks = []
    for index, (demand, own) in enumerate(zip(demands, parts, strict=True)):
        waiting = [(v, demand.pods * _value(part.terms, result.values)) for v, part in own]
        places = _places(index, demand, fitting, result.values)
        tasks += _shared_out(waiting, places)
    _pack(rooms, whole, fitting, result.values, tasks)
    return rooms


def _value(terms: Terms, values: Sequence[int]) -> int:
    """Return what a sum comes to in the solved program."""
    return sum(weight * values[variable] for variable, weight in terms)


def _places(
    index: int, demand: Demand, fitting: Fitting, values: Sequence[int]
) -> list[tuple[int, int | None, int]]:
    """Return (bin, node, pods) that a demand has in the solved program."""
    found: list[tuple[int, int | None, int]] = []
    for bin_ in demand.bins:
        nodes = [(n, variable) for (i, b, n), variable in fitting.on_node.items() if (i, b) == (index, bin_)]
        if nodes:
            found += [(bin_, node, values[variable]) for node, variable in nodes if values[variable]]
        else:
            found.append((bin_, None, demand.pods * _value(fitting.flows[index, bin_], values)))
    return found


def _shared_out(
    waiting: Sequence[tuple[int, int]], places: Sequence[tuple[int, int | None, int]]
) -> list[_Task]:
    """Divide the places of a demand, (bin, node, pods), among its variants, (variant, pods), in order."""
    queue, tasks = deque(places), []
    for v, pods in waiting:
        left = pods
        while left and queue:
            bin_, node, there = queue.popleft()
            here = min(left, there)
            if here:
                tasks.append(_Task(v=v, bins=(bin_,), pods=here, node=node))
            if there > here:
                queue.appendleft((bin_, node, there - here))
            left -= here
    return tasks


def _pack(
    rooms: Rooms, problem: PlacementProblem, fitting: Fitting, values: Sequence[int], tasks: Sequence[_Task]
) -> None:
    """Place all tasks: on a decided node, by packing patterns of a bin, or else the largest units first."""
    packed = {bin_ for bin_, _, _ in fitting.packed}
    waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
    rest = []
    for task in tasks:
        size = problem.variants[task.v].accelerators
        if task.node is not None:
            rooms.put(task.v, task.node, task.pods)
        elif task.bins[0] in packed:
            waiting[task.bins[0], size] += [task.v] * task.pods
        else:
            rest.append(task)
    _fill_patterns(rooms, problem, fitting, values, waiting)
    for task in sorted(rest, key=lambda task: _turn(problem, task)):
        rooms.take_all(task)


def _fill_patterns(
    rooms: Rooms,
    problem: PlacementProblem,
    fitting: Fitting,
    values: Sequence[int],
    waiting: Mapping[tuple[int, int], list[int]],
) -> None:
    """Fill as many nodes by each packing pattern as the solved program says.

    `waiting` are the variants of single pods by (bin, accelerators), once for each pod; they are used up.
    """
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for bin_ in {bin_ for bin_, _, _ in fitting.packed}:
        for node in reversed(problem.bins[bin_].nodes):
            alike[bin_, rooms.hosts.free[node]].append(node)
    for (bin_, free, pattern), variable in sorted(fitting.packed.items()):
        for _ in range(values[variable]):
            node = alike[bin_, free].pop()
            for size in pattern:
                if waiting.get((bin_, size)):
                    rooms.put(waiting[bin_, size].pop(), node, 1)


class Rooms:
    """What is free, and what lies where, while pods are placed."""

    def __init__(
        self, problem: PlacementProblem, replicas: Sequence[int], *, is_spread: bool = False
    ) -> None:
        """Begin once those have gone that go; `problem` has no more nodes to add.

        With `is_spread` domains are decided: on the way there some may be further ahead than allowed.
        """
        self._problem = problem
        self._is_spread = is_spread
        self.new = [Counter[int]() for _ in problem.variants]
        self._lying = {
            v: staying_pods(problem, v, replicas[v])
            for v, terms in enumerate(problem.variants)
            if terms.is_topology_constrained
        }
        nodes = {b: bin_.nodes for b, bin_ in enumerate(problem.bins)}
        self.hosts = Hosts(freed(problem, tuple(replicas)), nodes)
        self._bin_of = {node: b for b, own in nodes.items() for node in own}
        self._blocks: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._block_rooms: dict[tuple[int, int, int], dict[int, int]] = {}

    def take_all(self, task: _Task) -> bool:
        """Place the pods of a task, as many as have room; tell whether all do."""
        terms = self._problem.variants[task.v]
        if terms.is_topology_constrained:
            # Where domains are decided the pods of a replica may go to several: each is a task's own then.
            step = 1 if self._is_spread and terms.together is None else min(terms.pods, task.pods)
            return all(self.take(task.v, task.bins, step) for _ in range(task.pods // step))
        found = dict(self.hosts.take_many(task.bins, terms.accelerators, task.pods))
        for node, pods in found.items():
            self.new[task.v][node] += pods
            self._count_blocks(node, -pods * terms.accelerators)
        surplus = sum(found.values()) % terms.pods if sum(found.values()) < task.pods else 0
        for node in reversed(found):
            drop = min(surplus, found[node])
            self.put(task.v, node, -drop)
            surplus -= drop
        return sum(found.values()) == task.pods

    def take(self, v: int, bins: Sequence[int], pods: int) -> list[int] | None:
        """Return the nodes that some pods of a variant take, all or none."""
        terms = self._problem.variants[v]
        for nodes in self._choices(terms, bins):
            taken: list[int] = []
            while len(taken) < pods and (node := self._fullest(nodes, v, terms, bins)) is not None:
                self.put(v, node, 1)
                taken.append(node)
            if len(taken) == pods:
                return taken
            for node in taken:
                self.put(v, node, -1)
        return None

    def put(self, v: int, node: int, pods: int) -> None:
        """Let pods of a variant lie on a node, or take some away."""
        accelerators = pods * self._problem.variants[v].accelerators
        self.hosts.take_on(node, accelerators)
        self.new[v][node] += pods
        if v in self._lying:
            self._lying[v][node] += pods
        self._count_blocks(node, -accelerators)

    def _count_blocks(self, node: int, more: int) -> None:
        """Update the counted rooms of a node's domains when so many more accelerators are free on it."""
        free = self.hosts.free[node]
        for (bin_, topology, size), rooms in self._block_rooms.items():
            domain = self._problem.topologies[topology][node]
            if bin_ == self._bin_of[node] and domain in rooms:
                rooms[domain] += max(0, free) // size - max(0, free - more) // size

    def _choices(self, terms: VariantTerms, bins: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Yield sets of nodes of which one has to hold a whole gang, the fullest first; None for any node."""
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
        """Return how many pods of a size each domain of a bin has room for, as things stand."""
        key = bin_, topology, accelerators
        if key not in self._block_rooms:
            self._block_rooms[key] = {
                domain: sum(max(0, self.hosts.free[node]) // accelerators for node in nodes)
                for domain, nodes in self._nodes_in(bin_, topology).items()
            }
        return self._block_rooms[key]

    def _nodes_in(self, bin_: int, topology: int) -> dict[int, list[int]]:
        """Return the nodes of each domain of a bin."""
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
        """Return the node with the least room among those that may take one more pod."""
        if nodes is None and terms.spread is None and terms.most_per_node is None:
            return self.hosts.fullest(bins, terms.accelerators)
        if nodes is None and terms.most_per_node is None and terms.spread is not None:
            return self.hosts.fullest(self._open_bins(v, terms.spread, bins), terms.accelerators)
        open_bins = set(bins if terms.spread is None else self._open_bins(v, terms.spread, bins))
        every = nodes if nodes is not None else [n for b in open_bins for n in self._problem.bins[b].nodes]
        return min(
            (
                node
                for node in every
                if self.hosts.free[node] >= terms.accelerators
                and (terms.most_per_node is None or self._lying[v][node] < terms.most_per_node)
                and self._bin_of[node] in open_bins
            ),
            key=lambda node: (self.hosts.free[node], node),
            default=None,
        )

    def _open_bins(self, v: int, spread: SpreadTerms, bins: Sequence[int]) -> list[int]:
        """Return the bins in domains that may have one more pod; the nodes of a bin are in one domain."""
        if self._is_spread:
            return list(bins)
        domain_of = self._problem.topologies[spread.topology]
        counts = dict.fromkeys(spread.domains, 0)
        for node, pods in self._lying[v].items():
            if domain_of[node] in counts:
                counts[domain_of[node]] += pods
        least = min(counts.values(), default=0)
        is_open = {d for d, pods in counts.items() if pods + 1 - least <= spread.max_skew}
        return [b for b in bins if (own := self._problem.bins[b].nodes) and domain_of[own[0]] in is_open]
