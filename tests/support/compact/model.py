"""The compact formulation: replicas of each variant and their nodes, as one CP-SAT model.

Lexicographic objectives: minimum replicas and then required capacity, each by priority (per mille of each
requirement), ready capacity while replacements start, cost including transitions, disruption, and name order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from controller.planning.magnitude import check_magnitude
from controller.planning.problem import (
    COST,
    NO_DOMAIN,
    PER_MILLE,
    CountedReplicas,
    PlacementProblem,
    Proof,
    Solution,
    Stage,
    level_name,
)
from support.compact.lexicographic import Minimum, Objective, minimize_in_order
from support.compact.pods import Pods, keep_rules
from support.compact.variables import Variables, named, valued

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.cpsat import Effort

Var = cp_model.IntVar


def place(problem: PlacementProblem, *, effort: Effort) -> Solution:
    """Return the best placement, or the best one found if the effort does not suffice.

    Raises NumbersTooLargeError, and NoSolutionError if the effort does not suffice for any.
    """
    check_magnitude(problem)
    given, problem = problem, expanded(problem)
    model = cp_model.CpModel()
    variables = _variables(model, given, problem)
    _remove_in_order(model, variables, problem)
    _price_transitions(model, variables, problem)
    _cover(model, variables, problem)
    _keep_limits(model, variables, problem)
    _fit_nodes(model, variables, problem)
    _keep_rules(model, variables, given, problem)
    objectives = _objectives(variables, given, problem)
    found = minimize_in_order(
        model,
        objectives,
        valued=lambda values: valued(problem, variables, values),
        effort=effort,
    )
    solution = _solution(given, problem, variables, found)
    return replace(solution, proofs=_proofs(problem, objectives, found))


def _proofs(problem: PlacementProblem, objectives: Sequence[Objective], found: Minimum) -> tuple[Proof, ...]:
    """Return the proof of each level, with cost as the last."""
    totals = Counter[str]()
    for row in problem.rows:
        totals[level_name(*row.level)] += PER_MILLE * row.weight if row.requirement else 0
    levels = [objective.name for objective in objectives].index(COST) + 1
    return tuple(
        Proof(
            level=objective.name,
            value=value,
            bound=min(bound, value),
            total=value if objective.name == COST else totals[objective.name],
        )
        for objective, bound in zip(objectives[:levels], found.bounds, strict=False)
        for value in [objective.value(found.values)]
    )


def _variables(model: cp_model.CpModel, given: PlacementProblem, problem: PlacementProblem) -> Variables:
    numbered = list(enumerate(problem.variants))
    yet_to_come = range(len(given.free), len(problem.free))
    return Variables(
        replicas=[model.new_int_var(t.lower, t.upper, f"replicas_{v}") for v, t in numbered],
        stays=[
            [model.new_bool_var(f"stays_{v}_{j}") for j in range(len(t.bound_replicas))] for v, t in numbered
        ],
        placed={},
        new=[model.new_int_var(0, t.upper, f"new_{v}") for v, t in numbered],
        started=[model.new_int_var(0, t.upper, f"started_{v}") for v, t in numbered],
        stopped=[model.new_int_var(0, t.current, f"stopped_{v}") for v, t in numbered],
        serving=[model.new_int_var(0, t.ready, f"serving_{v}") for v, t in numbered],
        shortfall=[model.new_int_var(0, PER_MILLE, f"shortfall_{r}") for r in range(len(problem.rows))],
        slots={},
        has_room={},
        opened={node: model.new_bool_var(f"opened_{node}") for node in yet_to_come},
    )


def _remove_in_order(model: cp_model.CpModel, variables: Variables, problem: PlacementProblem) -> None:
    """Split replicas into staying and new ones; removal follows the order, and new ones need all to stay."""
    for v, terms in enumerate(problem.variants):
        stays = variables.stays[v]
        model.add(variables.replicas[v] == sum(stays) + variables.new[v])
        for earlier, later in pairwise(stays):
            model.add_implication(earlier, later)
        if stays:
            model.add(variables.new[v] <= terms.upper * stays[0])


def _price_transitions(model: cp_model.CpModel, variables: Variables, problem: PlacementProblem) -> None:
    """Count starts and stops relative to the current replicas."""
    for v, terms in enumerate(problem.variants):
        change = variables.started[v] - variables.stopped[v]
        model.add(variables.replicas[v] - terms.current == change)


def _cover(model: cp_model.CpModel, variables: Variables, problem: PlacementProblem) -> None:
    """Cover each requirement by the replicas' capacity plus a shortfall."""
    for serving, replicas in zip(variables.serving, variables.replicas, strict=True):
        model.add(serving <= replicas)
    for row, shortfall in zip(problem.rows, variables.shortfall, strict=True):
        counted: dict[CountedReplicas, Sequence[cp_model.LinearExprT]] = {
            CountedReplicas.ALL: variables.replicas,
            CountedReplicas.EXISTING: [cp_model.LinearExpr.sum(stays) for stays in variables.stays],
            CountedReplicas.READY: variables.serving,
        }
        capacity = cp_model.LinearExpr.weighted_sum(
            [counted[row.counted][v] for v, _ in row.terms], [PER_MILLE * amount for _, amount in row.terms]
        )
        model.add(capacity + row.requirement * shortfall >= PER_MILLE * row.requirement)


def _keep_limits(model: cp_model.CpModel, variables: Variables, problem: PlacementProblem) -> None:
    """Keep quotas and budgets, except for the excess of replicas that must not be removed."""
    for row in problem.limits:
        untouched = sum(amount * problem.variants[v].lower for v, amount in row.terms)
        model.add(sum(amount * variables.replicas[v] for v, amount in row.terms) <= max(row.limit, untouched))


def _fit_nodes(model: cp_model.CpModel, variables: Variables, problem: PlacementProblem) -> None:
    """Give each new replica a slot in one bin, within the slots of the bin's nodes."""
    leaving = _leaving(variables, problem)
    places: list[list[Var]] = [[] for _ in problem.variants]
    for b, bin_ in enumerate(problem.bins):
        for v in bin_.variants:
            most = problem.variants[v].upper * problem.variants[v].pods
            placed = model.new_int_var(0, most, f"placed_{b}_{v}")
            variables.placed[b, v] = placed
            places[v].append(placed)
        for size in bin_.sizes:
            taken = [
                (problem.variants[v].accelerators // size) * variables.placed[b, v]
                for v in bin_.variants
                if problem.variants[v].accelerators >= size
            ]
            model.add(
                sum(taken)
                <= sum(
                    problem.free[n] // size * variables.opened[n]
                    if n in variables.opened
                    else _slots(model, variables, problem, leaving[n], node=n, size=size)
                    for n in bin_.nodes
                )
            )
    for v, terms in enumerate(problem.variants):
        if terms.accelerators:
            model.add(terms.pods * variables.new[v] == sum(places[v]))


def _keep_rules(
    model: cp_model.CpModel, variables: Variables, given: PlacementProblem, problem: PlacementProblem
) -> None:
    """Add the rules for spreading pods and for keeping them together or apart; each bin is then one node."""
    home = {node: b for b, bin_ in enumerate(given.bins) for node in bin_.nodes}
    to_come = [growth.bin for growth in given.growth for _ in range(growth.limit)]
    home |= dict(enumerate(to_come, start=len(given.free)))
    for v, terms in enumerate(problem.variants):
        if terms.is_topology_constrained:
            placed = {b: places for (b, of), places in variables.placed.items() if of == v}
            new = {problem.bins[b].nodes[0]: places for b, places in placed.items()}
            keep_rules(model, terms, Pods(new=new, stays=variables.stays[v]), problem, home)


def _leaving(variables: Variables, problem: PlacementProblem) -> list[list[tuple[Var, int]]]:
    """Return for each node the replicas that may leave it: (stays, accelerators)."""
    leaving: list[list[tuple[Var, int]]] = [[] for _ in problem.free]
    for terms, stays in zip(problem.variants, variables.stays, strict=True):
        removable = len(terms.bound_replicas) - terms.lower
        for places, stay in zip(terms.bound_replicas[:removable], stays[:removable], strict=True):
            for node in places if terms.accelerators else ():
                leaving[node].append((stay, terms.accelerators))
    return leaving


def _slots(
    model: cp_model.CpModel,
    variables: Variables,
    problem: PlacementProblem,
    leaving: Sequence[tuple[Var, int]],
    *,
    node: int,
    size: int,
) -> cp_model.LinearExprT:
    """Return the number of replicas of a size that fit on the node after the removals."""
    free = problem.free[node]
    if not leaving:
        return max(0, free) // size
    most = free + sum(accelerators for _, accelerators in leaving)
    room = most - sum(accelerators * stay for stay, accelerators in leaving)
    slots = variables.slots[node, size] = model.new_int_var(0, max(0, most) // size, f"slots_{node}_{size}")
    if free >= 0:
        model.add(size * slots <= room)
        return slots
    # An overcommitted node has no slots until enough has left. Without the literal, removals would be forced.
    has_room = variables.has_room[node, size] = model.new_bool_var(f"has_room_{node}_{size}")
    model.add(size * slots <= room).only_enforce_if(has_room)
    model.add(slots == 0).only_enforce_if(~has_room)
    return slots


def _objectives(variables: Variables, given: PlacementProblem, problem: PlacementProblem) -> list[Objective]:
    """Return the objectives, in order."""
    prices = [growth.price for growth in given.growth for _ in range(growth.limit)]
    cost, disruption = list(zip(variables.opened.values(), prices, strict=True)), []
    for v, terms in enumerate(problem.variants):
        moves = (variables.started[v], variables.stopped[v])
        transitions = (terms.start_price, terms.stop_price)
        cost += [(variables.replicas[v], terms.cost), *zip(moves, transitions, strict=True)]
        disruption += [(move, max(1, terms.accelerators_per_replica)) for move in moves]
    order = [(var, position) for position, var in enumerate(variables.replicas, start=1)]
    return [
        *(objective for stage in Stage for objective in _shortfalls(variables, problem, stage)),
        Objective(name=COST, terms=cost),
        Objective(name="disruption", terms=disruption),
        Objective(name="order", terms=order),
    ]


def _shortfalls(variables: Variables, problem: PlacementProblem, stage: Stage) -> list[Objective]:
    """Return the shortfalls of one stage, level by level."""
    levels: dict[tuple[Stage, int], list[tuple[Var, int]]] = {}
    for row, shortfall in zip(problem.rows, variables.shortfall, strict=True):
        if row.stage is stage:
            levels.setdefault(row.level, []).append((shortfall, row.weight))
    return [
        Objective(name=level_name(stage, priority), terms=group)
        for (_, priority), group in sorted(levels.items(), key=itemgetter(0))
    ]


def _solution(
    given: PlacementProblem,
    problem: PlacementProblem,
    variables: Variables,
    found: Minimum,
) -> Solution:
    """Return the solution of an assignment, with a node for each placed replica."""
    places = named(problem, variables, found.values)
    origin = [index for index, growth in enumerate(given.growth) for _ in range(growth.limit)]
    grown: Counter[tuple[int, int]] = Counter()
    for v, node, count in places:
        if node in variables.opened:
            grown[v, origin[node - len(given.free)]] += count
    added = Counter(
        origin[node - len(given.free)] for node, var in variables.opened.items() if found.values[var.index]
    )
    return Solution(
        replicas=tuple(found.values[var.index] for var in variables.replicas),
        placements=tuple(place for place in places if place[1] not in variables.opened),
        grown=tuple((v, growth, count) for (v, growth), count in sorted(grown.items())),
        added=tuple(added[index] for index in range(len(given.growth))),
    )


def expanded(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem with all nodes that could be added, after the existing ones.

    Bins whose sizes do not divide each other become one bin per node with slots of a single accelerator. So
    do all bins if there are topology constraints.
    """
    is_simple = not any(terms.is_topology_constrained for terms in problem.variants)
    free = list(problem.free)
    bins = [list(bin_.nodes) for bin_ in problem.bins]
    for growth in problem.growth:
        bins[growth.bin] += range(len(free), len(free) + growth.limit)
        free += [growth.accelerators] * growth.limit
    split = [
        part
        for bin_, nodes in zip(problem.bins, bins, strict=True)
        for part in (
            [replace(bin_, nodes=tuple(nodes))]
            if bin_.is_divisible and is_simple
            else [replace(bin_, nodes=(node,), sizes=(1,)) for node in nodes]
        )
    ]
    to_come = [growth.domains for growth in problem.growth for _ in range(growth.limit)]
    topologies = tuple(
        (*domains, *(of[index] if of else NO_DOMAIN for of in to_come))
        for index, domains in enumerate(problem.topologies)
    )
    return replace(problem, free=tuple(free), bins=tuple(split), growth=(), topologies=topologies)
