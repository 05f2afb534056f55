"""Variables of the compact formulation, and the values that follow from replicas and their places.

The solver minimizes one objective at a time, and leaves the terms of later objectives arbitrarily large.
Without a correction, a solution would look worse than it is, and might be discarded for one that is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.planning.problem import free_after_removals, per_mille_missing, provided_by
from support.compact.assignment import assign

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from ortools.sat.python.cp_model import IntVar

    from controller.planning.problem import PlacementProblem
    from support.compact.assignment import Placements


@dataclass(frozen=True, kw_only=True, slots=True)
class Variables:
    """The decision variables; lists have the indices of the problem's tuples."""

    replicas: list[IntVar]
    stays: list[list[IntVar]]
    """By variant and bound replica, in removal order."""

    placed: dict[tuple[int, int], IntVar]
    """(bin, variant) -> new pods of the variant there."""

    new: list[IntVar]
    started: list[IntVar]
    stopped: list[IntVar]
    serving: list[IntVar]
    """Replicas that are ready now and stay, as they are removed last."""

    shortfall: list[IntVar]
    """By row, in per mille."""

    slots: dict[tuple[int, int], IntVar]
    """(node, size) -> number of slots of a size, if that depends on removals."""

    has_room: dict[tuple[int, int], IntVar]
    """(node, size) -> whether there is any room, if the node is overcommitted now."""

    opened: dict[int, IntVar]
    """Node that does not exist yet -> whether it is added."""


def valued(problem: PlacementProblem, variables: Variables, values: Sequence[int]) -> tuple[int, ...]:
    """Return an assignment with dependent variables reduced to what replicas and their places imply."""
    made = list(values)
    replicas = tuple(values[var.index] for var in variables.replicas)
    used = {node for _, node, _ in named(problem, variables, values)} if variables.opened else set[int]()
    for var, value in _following(problem, variables, replicas, used=used):
        made[var.index] = value
    return tuple(made)


def named(problem: PlacementProblem, variables: Variables, values: Sequence[int]) -> Placements:
    """Return (variant, node, replicas) for all placed replicas."""
    closed = {node for node, var in variables.opened.items() if not values[var.index]}
    usable = replace(
        problem, free=tuple(0 if node in closed else free for node, free in enumerate(problem.free))
    )
    shares = {key: values[var.index] for key, var in variables.placed.items()}
    return assign(usable, tuple(values[var.index] for var in variables.replicas), shares)


def _following(
    problem: PlacementProblem, variables: Variables, replicas: tuple[int, ...], *, used: AbstractSet[int]
) -> Iterator[tuple[IntVar, int]]:
    """Yield the values of the objectives' terms, of the staying replicas, and of the resulting room."""
    for v, (terms, count) in enumerate(zip(problem.variants, replicas, strict=True)):
        leaving = max(0, len(terms.bound_replicas) - count)
        yield variables.replicas[v], count
        yield variables.new[v], max(0, count - len(terms.bound_replicas))
        yield variables.started[v], max(0, count - terms.current)
        yield variables.stopped[v], max(0, terms.current - count)
        yield variables.serving[v], min(terms.ready, count)
        yield from ((var, int(j >= leaving)) for j, var in enumerate(variables.stays[v]))
    for row, var in zip(problem.rows, variables.shortfall, strict=True):
        yield var, per_mille_missing(row.requirement, provided_by(problem, row, replicas))
    yield from ((var, int(node in used)) for node, var in variables.opened.items())
    free = free_after_removals(problem, replicas)
    yield from ((var, max(0, free[node]) // size) for (node, size), var in variables.slots.items())
    yield from ((var, int(free[node] >= 0)) for (node, _), var in variables.has_room.items())
