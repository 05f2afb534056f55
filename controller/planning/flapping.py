"""Variants that change direction too often: remembered by when they turned, and held by dearer prices.

Only cost gives way to this: what demand, minimums and priorities ask for comes first, as it does before cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.planning.state import Course

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.decision import Decision
    from controller.planning.problem import PlacementProblem, VariantTerms
    from controller.planning.settings import Settings
    from controller.planning.snapshot import Snapshot, Variant
    from controller.planning.state import PlanningState

    Key = tuple[str, str]

PRICE_FACTOR = 20
"""How many times its cost per hour a turn of such a variant costs: more than stopping it could ever save."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flapping:
    """A variant whose budget of reversals is spent."""

    direction: int
    """Of its last change: 1 for up, -1 for down."""

    reversals: int
    """Within the window."""


def flapping(snapshot: Snapshot, state: PlanningState, settings: Settings) -> Mapping[Key, Flapping]:
    """Return the variants that are not to turn for cost alone.

    Who goes down may have to come up again: the last reversal of a budget is kept for that.
    """
    if not settings.flap_reversals or not snapshot.taken_seconds:
        return {}
    least = {1: max(1, settings.flap_reversals - 1), -1: settings.flap_reversals}
    recent = {
        course.key: Flapping(
            direction=course.direction,
            reversals=len(_recent(course.reversed_seconds, snapshot.taken_seconds, settings)),
        )
        for course in state.courses
        if course.direction
    }
    return {key: found for key, found in recent.items() if found.reversals >= least[found.direction]}


def steadied(
    problem: PlacementProblem, variants: Sequence[Variant], held: Mapping[Key, Flapping]
) -> PlacementProblem:
    """Return the problem in which turning round is dear for those who have done it too often."""
    if not held:
        return problem
    return replace(
        problem,
        variants=tuple(
            _dearer(terms, held[variant.key]) if variant.key in held else terms
            for terms, variant in zip(problem.variants, variants, strict=True)
        ),
    )


def followed(
    snapshot: Snapshot, state: PlanningState, decisions: Sequence[Decision], settings: Settings
) -> tuple[Course, ...]:
    """Return how each variant has moved by now; without a moment, what was remembered."""
    if not snapshot.taken_seconds:
        return state.courses
    courses = {course.key: course for course in state.courses}
    variants = {variant.key: variant for variant in snapshot.variants}
    return tuple(
        _moved(
            courses.get((item.namespace, item.name)) or _begun(variants[item.namespace, item.name]),
            item.replicas,
            moment=snapshot.taken_seconds,
            settings=settings,
        )
        for item in decisions
    )


def _dearer(terms: VariantTerms, found: Flapping) -> VariantTerms:
    if found.direction > 0:
        return replace(terms, stop_price=PRICE_FACTOR * max(1, terms.cost, terms.stop_price))
    return replace(terms, start_price=PRICE_FACTOR * max(1, terms.cost, terms.start_price))


def _begun(variant: Variant) -> Course:
    published = variant.desired_replicas
    return Course(
        namespace=variant.namespace,
        name=variant.name,
        replicas=variant.current_replicas if published is None else published,
    )


def _moved(course: Course, replicas: int, *, moment: float, settings: Settings) -> Course:
    change = (replicas > course.replicas) - (replicas < course.replicas)
    turned = (moment,) if change * course.direction < 0 else ()
    return replace(
        course,
        replicas=replicas,
        direction=change or course.direction,
        reversed_seconds=(*_recent(course.reversed_seconds, moment, settings), *turned),
    )


def _recent(moments: Sequence[float], now: float, settings: Settings) -> tuple[float, ...]:
    """Return those within the window; none that a clock which was set back says are to come."""
    return tuple(moment for moment in moments if 0 <= now - moment < settings.flap_window_seconds)
