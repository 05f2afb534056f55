"""The problem as every rule looks at it, made out once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.fleets.rivals.asking import askings, floors, lacking
from hack.fleets.rivals.kinds import kinds, kinds_of, rooms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import PlacementProblem
    from hack.fleets.rivals.asking import Asking, Want
    from hack.fleets.rivals.kinds import Kind


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
    models, known = askings(problem), kinds(problem)
    least = floors(problem, models)
    names = [terms.name for terms in problem.variants]
    return View(
        problem=problem,
        models=models,
        floors=tuple(least),
        lacking=lacking(models, least),
        kinds=known,
        rooms=rooms_of(problem, known),
        usable=kinds_of(problem, known),
        by_name=tuple(sorted(range(len(names)), key=names.__getitem__)),
    )
