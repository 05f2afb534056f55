"""The problem as every rule looks at it, made out once for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from controller.planning.problem import PlacementProblem
from hack.fleets.rivals.asking import Asking, Want, askings, floors, lacking


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Nodes that the same variants may use, in one bin or in many."""

    nodes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Of slots that tell exactly what fits, smallest first; empty where every node is a bin of its own."""

    variants: tuple[int, ...]


def _kinds(problem: PlacementProblem) -> list[Kind]:
    """Return the kinds of nodes, in the order of their first bins."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    # Bins of one kind mostly share one tuple; to hash thousands of long ones would take forever.
    group_of: dict[int, list[int]] = {}
    for b, bin_ in enumerate(problem.bins):
        if id(bin_.variants) not in group_of:
            group_of[id(bin_.variants)] = alike[bin_.variants]
        group_of[id(bin_.variants)].append(b)
    return [
        Kind(
            nodes=tuple(node for b in group for node in problem.bins[b].nodes),
            sizes=problem.bins[group[0]].sizes if len(group) == 1 else (),
            variants=problem.bins[group[0]].variants,
        )
        for group in alike.values()
    ]


def _kinds_of(problem: PlacementProblem, known: Sequence[Kind]) -> list[tuple[int, ...]]:
    """Return for each variant the kinds of nodes that it may use."""
    usable: list[tuple[int, ...]] = [()] * len(problem.variants)
    for k, kind in enumerate(known):
        alone = (k,)
        for v in kind.variants:
            usable[v] = usable[v] + alone if usable[v] else alone
    return usable


def _rooms_of(problem: PlacementProblem, known: Sequence[Kind]) -> tuple[int, ...]:
    """Return the accelerators of each kind that are free or in use by the variants of the problem."""
    room = list(problem.free)
    for terms in problem.variants:
        for places in terms.bound:
            for node in places:
                room[node] += terms.accelerators
    return tuple(max(0, sum([room[node] for node in kind.nodes])) for kind in known)


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Who asks, and the nodes by kind."""

    problem: PlacementProblem
    models: Sequence[Asking]
    """By name."""

    floors: tuple[int, ...]
    """Replicas of each variant that are there whatever is decided."""

    lacking: Sequence[Sequence[Want]]
    """What is left of each model's wants then."""

    kinds: Sequence[Kind]
    rooms: tuple[int, ...]
    """Accelerators of each kind that are free or in use by the variants of the problem."""

    usable: Sequence[Sequence[int]]
    """Kinds that each variant may use."""

    by_name: tuple[int, ...]
    """The variants by name."""


def view_of(problem: PlacementProblem) -> View:
    """Return what there is to see of a problem."""
    models, known = askings(problem), _kinds(problem)
    least = floors(problem, models)
    names = [terms.name for terms in problem.variants]
    return View(
        problem=problem,
        models=models,
        floors=tuple(least),
        lacking=lacking(models, least),
        kinds=known,
        rooms=_rooms_of(problem, known),
        usable=_kinds_of(problem, known),
        by_name=tuple(sorted(range(len(names)), key=names.__getitem__)),
    )
