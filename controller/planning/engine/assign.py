"""Assign new pods to nodes, given replica counts, and give leftover room to models that are short.

Best-fit decreasing is tried first: the largest units first, each on the fullest node that may take it. If
sizes divide each other, this places everything that can be placed. If some unit finds no place, a feasibility
program with the same rows as the core decides.

A search that stops near its bound may leave room: `Vacancies` tells whether one more replica fits. One more
replica within limits and free accelerators reduces a shortfall and increases none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from controller.planning.cpsat import Effort, Program, Terms
from controller.planning.engine.demands import Amount, UnitDemand
from controller.planning.engine.fit import Fit
from controller.planning.engine.rooms import Hosts, Rooms, Task
from controller.planning.engine.shared import limit_of, nodes_of
from controller.planning.problem import (
    NO_DOMAIN,
    CountedReplicas,
    CoverRow,
    PlacementProblem,
    Solution,
    bins_of,
    free_after_removals,
    per_mille_missing,
)

FEASIBILITY_SECONDS = 10.0
"""Deterministic time for finding places: it is well spent, because it makes the chosen replica counts
feasible.
"""


class PlaceClaim(NamedTuple):
    """Replicas of a variant that want places, in order of their turns."""

    turn: int
    variant: int
    replicas: int


def assign(
    problem: PlacementProblem, replicas: Sequence[int], added: Sequence[int], effort: Effort
) -> Solution:
    """Return nodes for the new pods of the replicas, or of as many as fit, plus extra replicas; no proofs.

    Extra replicas are added where demand is short and there is still room. Of added nodes, those are left
    that receive pods.
    """
    whole, none = with_added(problem, added), (0,) * len(replicas)
    claims = [PlaceClaim(0, v, count) for v, count in enumerate(replicas)]
    placed, rooms, has_all = _by_size(problem, whole, none, claims)
    if not has_all:
        # The program is used only if it finds places for all; if not, best fit has placed the larger units.
        alternative = _by_program(problem, whole, replicas, effort)
        if alternative is not None and _placed_replicas(problem, replicas, alternative) == placed:
            rooms = alternative
        else:
            placed = _placed_replicas(problem, replicas, rooms)
    return _solution(problem, fill(whole, placed, rooms), rooms, added)


def best_fit(problem: PlacementProblem, stays: Sequence[int], claims: Iterable[PlaceClaim]) -> Solution:
    """Return the replicas that best-fit decreasing can place, also on added nodes, plus extra replicas.

    `claims` are the replicas beyond those that stay. Extra replicas are added where demand is short and there
    is still room. Prices of added nodes are ignored.
    """
    added = [growth.limit for growth in problem.growth]
    whole = with_added(problem, added)
    replicas, rooms, _ = _by_size(problem, whole, stays, claims)
    return _solution(problem, fill(whole, _placed_replicas(problem, replicas, rooms), rooms), rooms, added)


def _by_size(
    problem: PlacementProblem, whole: PlacementProblem, stays: Sequence[int], claims: Iterable[PlaceClaim]
) -> tuple[tuple[int, ...], Rooms, bool]:
    """Place claims in turn, the largest units first; those that find no place do not stop the others.

    Returns the replicas with all claims, the rooms of those that found places, and whether all did.
    """
    bins, replicas = [tuple(own) for own in bins_of(problem)], list(stays)
    tasks: list[tuple[int, Task]] = []
    for claim in claims:
        terms, before = problem.variants[claim.variant], replicas[claim.variant]
        replicas[claim.variant] += claim.replicas
        new = replicas[claim.variant] - max(before, len(terms.bound_replicas))
        if terms.accelerators and new > 0:
            task = Task(v=claim.variant, bins=bins[claim.variant], pods=new * terms.pods)
            tasks.append((claim.turn, task))
    rooms = Rooms(whole, replicas)
    tasks.sort(key=lambda pair: (pair[0], *_turn(problem, pair[1])))
    # No generator: tasks after one without places still get theirs.
    has_place = [rooms.take_all(task) for _, task in tasks]
    return tuple(replicas), rooms, all(has_place)


def _turn(problem: PlacementProblem, task: Task) -> tuple[int, int, int, int]:
    """Return the sort key of a task: the largest units first, then those with the least choice."""
    terms = problem.variants[task.v]
    total = terms.accelerators * (terms.pods if terms.together is not None else 1)
    return -total, -terms.accelerators, len(task.bins) - terms.is_topology_constrained, task.v


def with_added(problem: PlacementProblem, added: Sequence[int]) -> PlacementProblem:
    """Return the problem with `added` nodes of each growth appended to the existing nodes."""
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


def _placed_replicas(problem: PlacementProblem, replicas: Sequence[int], rooms: Rooms) -> tuple[int, ...]:
    """Return the replicas whose pods all have a place."""
    new = [rooms.new[v].total() // terms.pods for v, terms in enumerate(problem.variants)]
    return tuple(
        min(count, len(terms.bound_replicas) + here) if terms.accelerators else count
        for count, terms, here in zip(replicas, problem.variants, new, strict=True)
    )


def _solution(
    problem: PlacementProblem, replicas: tuple[int, ...], rooms: Rooms, added: Sequence[int]
) -> Solution:
    """Return the solution of the placed pods; `added` is the number of added nodes per growth."""
    nodes = len(problem.free)
    origin = [g for g, count in enumerate(added) for _ in range(count)]
    placed = [(v, node, pods) for v, at in enumerate(rooms.new) for node, pods in at.items() if pods]
    grown = Counter[tuple[int, int]]()
    for v, node, pods in placed:
        if node >= nodes:
            grown[v, origin[node - nodes]] += pods
    used = Counter(origin[node - nodes] for node in {node for _, node, _ in placed if node >= nodes})
    return Solution(
        replicas=replicas,
        placements=tuple(sorted(place for place in placed if place[1] < nodes)),
        grown=tuple(sorted((v, g, pods) for (v, g), pods in grown.items())),
        added=tuple(used[g] for g in range(len(problem.growth))),
    )


def _by_program(
    problem: PlacementProblem, whole: PlacementProblem, replicas: Sequence[int], effort: Effort
) -> Rooms | None:
    """Return rooms for new pods from a feasibility program; None if it finds no solution.

    Where there are many domains to choose from, those that their room suggests are tried first.
    """
    free = free_after_removals(whole, tuple(replicas))
    for likely in (replicas, None):
        program = Program()
        one = program.constant()
        new = {
            v: Amount(
                terms=[(one, count - len(terms.bound_replicas))], most=count - len(terms.bound_replicas)
            )
            for v, (count, terms) in enumerate(zip(replicas, problem.variants, strict=True))
            if terms.accelerators and count > len(terms.bound_replicas)
        }
        fit = Fit(program, whole, nodes_of(whole), new, leaving={}, growth=(), free=free, likely=likely)
        result = program.solve(replace(effort, deterministic_seconds=FEASIBILITY_SECONDS))
        if result.values:
            return _pack(whole, replicas, fit, result.values)
        if not fit.fixes_domains:
            break
    return None


def _tasks(fit: Fit, values: Sequence[int]) -> list[Task]:
    """Return where the pods of each variant go in the solution of the program."""
    tasks = []
    for index, demand in enumerate(fit.demands):
        waiting = [(v, demand.pods * _value(part.terms, values)) for v, part in demand.parts]
        tasks += _shared_out(waiting, _places(index, demand, fit, values))
    return tasks


def _value(terms: Terms, values: Sequence[int]) -> int:
    return sum(weight * values[variable] for variable, weight in terms)


def _places(
    index: int, demand: UnitDemand, fit: Fit, values: Sequence[int]
) -> list[tuple[int, int | None, int]]:
    """Return (bin, node, pods) of a demand in the solution of the program."""
    places: list[tuple[int, int | None, int]] = []
    for bin_ in demand.bins:
        nodes = [(n, variable) for (i, b, n), variable in fit.on_node.items() if (i, b) == (index, bin_)]
        if nodes:
            places += [(bin_, node, values[variable]) for node, variable in nodes if values[variable]]
        else:
            places.append((bin_, None, demand.pods * _value(fit.flows[index, bin_], values)))
    return places


def _shared_out(
    waiting: Sequence[tuple[int, int]], places: Sequence[tuple[int, int | None, int]]
) -> list[Task]:
    """Distribute the places (bin, node, pods) of a demand over its variants (variant, pods), in order."""
    owners = (v for v, pods in waiting for _ in range(pods))
    single = ((bin_, node) for bin_, node, pods in places for _ in range(pods))
    shared = Counter(zip(owners, single, strict=False))
    return [Task(v=v, bins=(bin_,), pods=pods, node=node) for (v, (bin_, node)), pods in shared.items()]


def _pack(problem: PlacementProblem, replicas: Sequence[int], fit: Fit, values: Sequence[int]) -> Rooms:
    """Place all tasks: on their node, by the packing patterns of a bin, or else largest units first."""
    rooms = Rooms(problem, replicas, is_spread=True)
    packed = {bin_ for bin_, _, _ in fit.packed}
    waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
    rest = []
    for task in _tasks(fit, values):
        size = problem.variants[task.v].accelerators
        if task.node is not None:
            rooms.put(task.v, task.node, task.pods)
        elif task.bins[0] in packed:
            waiting[task.bins[0], size] += [task.v] * task.pods
        else:
            rest.append(task)
    _fill_patterns(rooms, problem, fit, values, waiting)
    for task in sorted(rest, key=lambda task: _turn(problem, task)):
        rooms.take_all(task)
    rooms.is_spread = False
    return rooms


def _fill_patterns(
    rooms: Rooms,
    problem: PlacementProblem,
    fit: Fit,
    values: Sequence[int],
    waiting: Mapping[tuple[int, int], list[int]],
) -> None:
    """Fill as many nodes by each packing pattern as the solution specifies.

    `waiting` lists the variants of single pods by (bin, accelerators), one entry per pod; it is consumed.
    """
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for bin_ in {bin_ for bin_, _, _ in fit.packed}:
        for node in reversed(problem.bins[bin_].nodes):
            alike[bin_, rooms.hosts.free[node]].append(node)
    for (bin_, free, pattern), variable in sorted(fit.packed.items()):
        for _ in range(values[variable]):
            node = alike[bin_, free].pop()
            for size in pattern:
                if waiting.get((bin_, size)):
                    rooms.put(waiting[bin_, size].pop(), node, 1)


class Headroom:
    """The remaining amount of each limit."""

    def __init__(self, problem: PlacementProblem, replicas: Sequence[int]) -> None:
        """Start with what the given replicas leave."""
        self._left: list[int] = []
        self._uses: dict[int, list[tuple[int, int]]] = {}
        for index, row in enumerate(problem.limits):
            self._left.append(limit_of(row, problem) - sum(amount * replicas[v] for v, amount in row.terms))
            for v, amount in row.terms:
                if amount:
                    self._uses.setdefault(v, []).append((index, amount))

    def most(self, v: int, requested: int) -> int:
        """Return how many of the wanted additional replicas of a variant the limits allow."""
        return min(
            [requested, *(max(0, self._left[index]) // amount for index, amount in self._uses.get(v, ()))]
        )

    def take(self, v: int, replicas: int) -> None:
        """Deduct additional replicas of a variant from the limits."""
        for index, amount in self._uses.get(v, ()):
            self._left[index] -= amount * replicas


def fill(problem: PlacementProblem, replicas: Sequence[int], rooms: Rooms) -> tuple[int, ...]:
    """Return the replicas plus those that still fit, and place them; the most important rows first."""
    # Rows that count only existing or ready replicas are not helped by new ones.
    filling = _FillState(problem, replicas, rooms)
    for row in sorted(problem.rows, key=lambda row: (row.level, row.name)):
        if row.counted is CountedReplicas.ALL:
            filling.fill(row)
    return tuple(filling.replicas)


class _FillState:
    """Replica counts while more replicas are placed."""

    def __init__(self, problem: PlacementProblem, replicas: Sequence[int], rooms: Rooms) -> None:
        self.replicas = list(replicas)
        self._problem = problem
        self._rooms = rooms
        self._bins = bins_of(problem)
        self._headroom = Headroom(problem, replicas)

    def fill(self, row: CoverRow) -> None:
        """Add replicas as long as they reduce the shortfall of a row, the cheapest per amount first."""
        provided = sum(amount * self.replicas[v] for v, amount in row.terms)
        short = per_mille_missing(row.requirement, provided)
        candidates = self._candidates(row) if short else []
        while short and candidates:
            v, amount = candidates[0]
            less = per_mille_missing(row.requirement, provided + amount)
            if less < short and self._add(v):
                provided, short = provided + amount, less
            else:
                candidates.pop(0)

    def _candidates(self, row: CoverRow) -> list[tuple[int, int]]:
        """Return (variant, amount) of the row's variants that use accelerators, the cheapest first."""
        variants = self._problem.variants
        useful = [(v, amount) for v, amount in row.terms if amount and variants[v].accelerators]
        return sorted(useful, key=lambda term: (variants[term[0]].cost / term[1], term[0]))

    def _add(self, v: int) -> bool:
        """Add a replica of a variant if limits and nodes have room for it; return whether they do."""
        terms = self._problem.variants[v]
        if self.replicas[v] >= terms.upper or not self._headroom.most(v, 1):
            return False
        leaving = len(terms.bound_replicas) - self.replicas[v]
        if leaving > 0:  # no start while bound replicas leave, but the last of these may stay
            if not self._rooms.keep(v, terms.bound_replicas[leaving - 1]):
                return False
        elif self._rooms.take(v, self._bins[v], terms.pods) is None:
            return False
        self._headroom.take(v, 1)
        self.replicas[v] += 1
        return True


class Vacancies:
    """The room that a solution leaves on nodes, including nodes that it adds."""

    def __init__(self, problem: PlacementProblem, solution: Solution) -> None:
        """Place the pods of a solution: on added nodes the largest first, each on the fullest node."""
        self._problem = problem
        self._bins = bins_of(problem)
        added = solution.added or (0,) * len(problem.growth)
        self._rooms = Rooms(with_added(problem, added), solution.replicas)
        for v, node, pods in solution.placements:
            self._rooms.put(v, node, pods)
        first = [*accumulate(added, initial=len(problem.free))]
        hosts = Hosts(
            self._rooms.hosts.free, {g: range(first[g], first[g + 1]) for g in range(len(problem.growth))}
        )
        grown = [(problem.variants[v].accelerators, v, g, pods) for v, g, pods in solution.grown]
        for size, v, g, count in sorted(grown, reverse=True):
            for node, pods in hosts.take_many((g,), size, count):
                self._rooms.put(v, node, pods)

    def has_room_for_one(self, variant: int) -> bool:
        """Return whether one more replica of a variant fits."""
        places = self._rooms.take(variant, self._bins[variant], self._problem.variants[variant].pods)
        for node in places or ():
            self._rooms.put(variant, node, -1)
        return places is not None
