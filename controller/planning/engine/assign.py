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
from controller.planning.engine.filling import fill
from controller.planning.engine.fit import Fit
from controller.planning.engine.rooms import Rooms, Task
from controller.planning.engine.shared import nodes_of
from controller.planning.problem import NO_DOMAIN, bins_of, freed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controller.planning.cpsat import Limits, Terms
    from controller.planning.engine.demands import Demand
    from controller.planning.engine.fit import Fitting
    from controller.planning.problem import PlacementProblem

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
    """Return a node for every new pod of some replicas, or of as many as find one, and of more.

    More are those that still have room where demand is short.
    """
    whole = with_added(problem, added)
    rooms, has_all = _best_fit(problem, whole, replicas, lambda task: _turn(problem, task))
    placed = tuple(replicas)
    if not has_all:
        found = _by_program(problem, whole, replicas, limits)
        if found is not None and _placed(problem, replicas, found) == placed:
            rooms = found
        else:
            placed = _placed(problem, replicas, rooms)
    return _assignment(problem, fill(whole, placed, rooms), rooms, added)


def best_fit(problem: PlacementProblem, replicas: Sequence[int], first: Sequence[int]) -> Assignment:
    """Return as many of some replicas as find a place by best-fit decreasing, on added nodes, too, and more.

    `first` is per variant when it takes its turn. More are those that still have room where demand is short.
    """
    added = [growth.limit for growth in problem.growth]
    whole = with_added(problem, added)
    rooms, _ = _best_fit(problem, whole, replicas, lambda task: (first[task.v], *_turn(problem, task)))
    return _assignment(problem, fill(whole, _placed(problem, replicas, rooms), rooms), rooms, added)


def _best_fit(
    problem: PlacementProblem,
    whole: PlacementProblem,
    replicas: Sequence[int],
    turn: Callable[[Task], tuple[int, ...]],
) -> tuple[Rooms, bool]:
    """Place as many new pods as find room, in turn, each on the fullest node; tell whether all do."""
    tasks = [
        Task(v=v, bins=tuple(bins), pods=(count - len(terms.bound)) * terms.pods)
        for v, (count, terms, bins) in enumerate(
            zip(replicas, problem.variants, bins_of(problem), strict=True)
        )
        if terms.accelerators and count > len(terms.bound)
    ]
    rooms, has_all = Rooms(whole, replicas), True
    for task in sorted(tasks, key=turn):
        # Every task is tried, also after one has failed: as many replicas as possible are to have places.
        if not rooms.take_all(task):
            has_all = False
    return rooms, has_all


def _turn(problem: PlacementProblem, task: Task) -> tuple[int, int, int, int]:
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
    demands, parts, _ = demands_of(program, whole, new, may_fix_domains=False)
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
    rooms.is_spread = False
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
) -> list[Task]:
    """Divide the places of a demand, (bin, node, pods), among its variants, (variant, pods), in order."""
    queue, tasks = deque(places), []
    for v, pods in waiting:
        left = pods
        while left and queue:
            bin_, node, there = queue.popleft()
            here = min(left, there)
            if here:
                tasks.append(Task(v=v, bins=(bin_,), pods=here, node=node))
            if there > here:
                queue.appendleft((bin_, node, there - here))
            left -= here
    return tasks


def _pack(
    rooms: Rooms, problem: PlacementProblem, fitting: Fitting, values: Sequence[int], tasks: Sequence[Task]
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
