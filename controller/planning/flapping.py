"""Detect variants that change direction too often, and discourage further reversals by higher prices.

This affects cost only: demand, minimums and priorities come before cost in the objective, and so before this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from controller.planning.decision import Decision
from controller.planning.problem import PlacementProblem, VariantTerms
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.state import Course, PlanningState

Key = tuple[str, str]

PRICE_FACTOR = 20
"""Factor on the hourly cost that a reversal of such a variant costs: more than it could ever save."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flapping:
    """A variant whose budget of reversals is exhausted."""

    direction: int
    """Direction of its last change: 1 for up, -1 for down."""

    reversals: int
    """Number of reversals within the window."""


def flapping(snapshot: Snapshot, state: PlanningState, settings: Settings) -> Mapping[Key, Flapping]:
    """Return the variants that must not be reversed for cost alone.

    A variant that scales down may have to scale up again, so the last reversal of the budget is kept for
    that.
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
    """Return the problem with a high price on the next reversal of the variants that flap."""
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
    """Return the updated course of each variant; unchanged if the snapshot has no timestamp."""
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
    """Return the timestamps within the window; future ones, after the clock was set back, are dropped."""
    return tuple(moment for moment in moments if 0 <= now - moment < settings.flap_window_seconds)
