"""Results as text for a terminal: policies side by side, then the decisions with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.table import Table

from controller.commands.plan.terminal import Tone, labelled_line, table, uncut, wrapping_text
from controller.commands.simulate.chart import Course, thin
from controller.commands.simulate.results import (
    Results,
    clock,
    engine_text,
    model_row,
    model_text,
    row_of,
    summary,
)
from controller.simulation.outcome import BindingCourse, PolicyOutcome

_HEADS: Final = (
    "POLICY", "COST", "MISSED", "TTFT", "ITL", "LOST", "ABANDONED", "TTFT-P90", "TTFT-P99", "ITL-P99",
    "REVERSALS/H", "PEAK",
)  # fmt: skip
_MODEL_HEADS: Final = (
    "POLICY", "MODEL", "REQUESTS", "MISSED", "TTFT", "ITL", "LOST", "ABANDONED", "TTFT-P99", "ITL-P99",
)  # fmt: skip
MOST_CHANGES: Final = 40
"""Maximum of decisions that are listed; JSON has all of them."""

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS: Final = 60

NamedCourse = tuple[str, Course]


def text_parts(results: Results) -> Iterator[RenderableType]:
    """Yield the summary, a table of policies, one of models if there are several, and the decisions.

    For an AutoscalingPolicy, they begin with its metrics and replicas over the scored time.
    """
    yield wrapping_text(summary(results))
    for model in results.scenario.models:
        yield labelled_line("  ", model_text(results.scenario, model))
    setups = {item.name: item for item in results.scenario.variants}
    for origins in results.origins:
        yield labelled_line("  ", engine_text(setups[origins.variant], origins))
    yield ""
    yield _table(_HEADS, (row_of(outcome, results.scenario) for outcome in results.outcomes))
    for outcome in results.outcomes:
        if outcome.note:
            yield labelled_line(f"{outcome.policy}: ", outcome.note)
    if len(results.scenario.models) > 1:
        yield ""
        rows = (
            model_row(outcome, model, results.scenario)
            for outcome in results.outcomes
            for model in outcome.models
        )
        yield _table(_MODEL_HEADS, rows)
    for outcome in results.outcomes:
        yield from _decisions(outcome)
        yield from _changes(outcome)
    for warning in results.warnings:
        yield labelled_line("warning: ", warning, Tone.ADVICE)


def _decisions(outcome: PolicyOutcome) -> Iterator[RenderableType]:
    for decided in outcome.decided:
        yield ""
        yield wrapping_text(f"what {outcome.policy} decided for {', '.join(decided.targets)}:", Tone.HEADING)
        scored = tuple(point for point in decided.points if point.seconds >= 0)
        yield over_time(replace(decided, points=scored))


def _changes(outcome: PolicyOutcome) -> Iterator[RenderableType]:
    """Yield the decisions of the scored time whose number differs from the one decided before."""
    changes, before = [], dict[str, int]()
    for item in outcome.decisions:
        was = before.get(item.variant, item.current_replicas)
        before[item.variant] = item.replicas
        if item.seconds >= 0 and item.replicas != was:
            changes.append(labelled_line(f"  {clock(item.seconds)}  ", item.sentence))
    if changes:
        yield ""
        yield wrapping_text(f"what {outcome.policy} decided (HPAs follow later):", Tone.HEADING)
        yield from changes[:MOST_CHANGES]
        if len(changes) > MOST_CHANGES:
            yield f"  and {len(changes) - MOST_CHANGES} more: -o json lists all decisions"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    made = table(heads, words={"POLICY", "MODEL", "PEAK"})
    for row in rows:
        made.add_row(*map(wrapping_text, row))
    return uncut(made)


class Courses(NamedTuple):
    """Decisions over time. Metrics and targets can have any name, also that of another course."""

    metrics: Sequence[NamedCourse]
    recommended: NamedCourse
    """What the metrics ask for, in replicas of capacity 1 if targets have other capacities."""

    decided: NamedCourse
    targets: Sequence[NamedCourse]
    """The replicas of each target; empty for a single one."""


def courses_of(decided: BindingCourse) -> Courses:
    """Return each value of the decisions over time."""
    points = decided.points
    asked = "recommended" if decided.is_alike else "recommended, of capacity 1"
    names = points[0].values if points else ()
    targets = decided.targets if len(decided.targets) > 1 else ()
    return Courses(
        metrics=[(name, [(point.seconds, point.values[name]) for point in points]) for name in names],
        recommended=(asked, [(point.seconds, point.recommended) for point in points]),
        decided=("decided", [(point.seconds, point.replicas) for point in points]),
        targets=[
            (name, [(point.seconds, point.targets[place]) for point in points])
            for place, name in enumerate(targets)
        ],
    )


def over_time(decided: BindingCourse) -> Table:
    """Return a table with a row for each course: its least and greatest value, and a drawing."""
    courses = courses_of(decided)
    rows = [
        *courses.metrics,  # their names have no space, so that they are not mistaken for other rows
        *((f"replicas {name}", course) for name, course in (courses.recommended, courses.decided)),
        *((f"  {name}", course) for name, course in courses.targets),
    ]
    made = table(("OVER TIME", "LEAST", "MOST", ""), words={"OVER TIME", ""})
    for name, course in rows:
        known = [value for _, value in course if value is not None]
        if not known:
            made.add_row(*map(wrapping_text, (name, "not known", "", "")))
            continue
        least, most = min(known), max(known)
        made.add_row(*map(wrapping_text, (name, f"{least:.6g}", f"{most:.6g}", sparkline(course, most))))
    return uncut(made)


def sparkline(course: Course, most: float) -> str:
    """Return one character for each stretch of a series, by its maximum; blank where it is unknown."""
    return "".join(_level(value, most) for _, value in thin(course, _COLUMNS))


def _level(value: float | None, most: float) -> str:
    if value is None:
        return " "
    return _LEVELS[round(value / most * (len(_LEVELS) - 1)) if most > 0 else 0]
