"""Results as one self-contained HTML page: no script, no other file, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from controller.commands.plan.page import render
from controller.commands.simulate.chart import (
    HEIGHT,
    MOST_POINTS,
    WIDTH,
    Chart,
    Line,
    Mark,
    Scale,
    linear,
    logarithmic,
    time_scale,
)
from controller.commands.simulate.results import (
    Results,
    amount,
    clock,
    model_row,
    model_text,
    moment,
    percent,
    row_of,
    summary,
)
from controller.commands.simulate.text import courses_of
from controller.simulation.outcome import BindingCourse, ModelPoint, Point, PolicyOutcome
from controller.simulation.scenario import Scenario, ScenarioModel, VariantSetup
from controller.sizing.capacity import duration


def page(results: Results) -> str:
    """Return the complete page."""
    scenario, outcomes = results.scenario, results.outcomes
    anchors = [f"policy-{position + 1}" for position in range(len(outcomes))]
    models = [
        (anchor, model_row(outcome, model, scenario))
        for anchor, outcome in zip(anchors, outcomes, strict=True)
        for model in outcome.models
    ]
    return render(
        "controller.commands.simulate",
        "simulation.html",
        title=f"Stowplan: {scenario.name}",
        results=results,
        summary=summary(results),
        model_texts=[model_text(scenario, model) for model in scenario.models],
        rows=[row_of(outcome, scenario) for outcome in outcomes],
        anchors=anchors,
        model_rows=[row for _, row in models],
        model_anchors=[anchor for anchor, _ in models],
        remarks=_remarks(results),
        charts_of=partial(charts_of, scenario, axes_of(results)),
        amount=amount,
        percent=percent,
        clock=clock,
        moment=moment,
        width=WIDTH,
        height=HEIGHT,
    )


def _remarks(results: Results) -> Iterator[str]:
    longest = max((len(outcome.points) for outcome in results.outcomes), default=0)
    yield "All policies have the same axes, except for replicas."
    yield "Dots are decisions, which HPAs follow later: hover over one to read it."
    if results.scenario.warm_up_seconds:
        yield "The shaded part is the warm-up, which is not scored."
    if longest > MOST_POINTS:
        yield f"Each point is the greatest value of {-(-longest // MOST_POINTS)} intervals."


class ModelAxes(NamedTuple):
    """The axes of one model."""

    load: Scale
    ttft: Scale
    itl: Scale


class Axes(NamedTuple):
    """Axes that are the same for every policy, so that their charts can be compared visually.

    Replicas have individual axes: next to a policy that starts a hundred, the others would be illegible.
    """

    time: Scale
    cost: Scale
    models: Mapping[str, ModelAxes]


def axes_of(results: Results) -> Axes:
    """Return axes that fit the charts of all policies."""
    scenario = results.scenario
    points = [point for outcome in results.outcomes for point in outcome.points]
    return Axes(
        time=time_scale(-scenario.warm_up_seconds, scenario.duration_seconds),
        cost=linear(point.cost_rate for point in points),
        models={model.model_id: _model_axes(model, points) for model in scenario.models},
    )


def _model_axes(model: ScenarioModel, points: Sequence[Point]) -> ModelAxes:
    targets = model.targets
    course = [seen for point in points for seen in point.models if seen.model_id == model.model_id]
    return ModelAxes(
        load=linear(seen.arrivals_per_second for seen in course),
        ttft=logarithmic([targets.ttft_seconds, *(seen.ttft_p90_seconds for seen in course)]),
        itl=linear([targets.itl_seconds, *(seen.itl_p90_seconds for seen in course)]),
    )


def charts_of(
    scenario: Scenario, axes: Axes, outcome: PolicyOutcome, anchor: str
) -> Mapping[str, Sequence[Chart]]:
    """Return the charts of one policy by title: of each model, the total cost, and what a policy decided.

    The lower bound, which is not simulated, has none.
    """
    if not outcome.points:
        return {}
    charts = {model.model_id: _model(scenario, outcome, model, axes, anchor) for model in scenario.models}
    title = "All models" if len(charts) > 1 else next(iter(charts), "")
    decided = {
        f"Decided for {', '.join(item.targets)}": list(decided_charts(item, axes.time))
        for item in outcome.decided
    }
    return charts | {title: [*charts.get(title, ()), _cost(outcome, axes)]} | decided


def _cost(outcome: PolicyOutcome, axes: Axes) -> Chart:
    course = [(point.seconds, point.cost_rate) for point in outcome.points]
    line = Line(name="of all replicas", look="cost", course=course, is_stepped=True, is_area=True)
    return Chart(title="Cost per hour", lines=(line,), time=axes.time, values=axes.cost)


def _model(
    scenario: Scenario, outcome: PolicyOutcome, model: ScenarioModel, axes: Axes, anchor: str
) -> Sequence[Chart]:
    course = [
        (point.seconds, seen)
        for point in outcome.points
        for seen in point.models
        if seen.model_id == model.model_id
    ]
    variants = scenario.variants_of(model.model_id)
    replicas = (_replicas(outcome, variant, axes, anchor) for variant in variants)
    return [*_served_charts(model, course, axes), *replicas]


def _served_charts(
    model: ScenarioModel, course: list[tuple[float, ModelPoint]], axes: Axes
) -> Iterator[Chart]:
    targets, scales = model.targets, axes.models[model.model_id]
    load = [(seconds, seen.arrivals_per_second) for seconds, seen in course]
    ttft = [(seconds, seen.ttft_p90_seconds) for seconds, seen in course]
    itl = [(seconds, seen.itl_p90_seconds) for seconds, seen in course]
    line = Line(name="requests per second", look="load", course=load)
    yield Chart(title="Load", lines=(line,), time=axes.time, values=scales.load)
    for title, scale, seen, target in (
        ("Time to first token, p90", scales.ttft, ttft, targets.ttft_seconds),
        ("Time between tokens, p90", scales.itl, itl, targets.itl_seconds),
    ):
        yield Chart(
            title=title,
            lines=(Line(name="of requests that finished", look="latency", course=seen),),
            time=axes.time,
            values=scale,
            value_text=duration,
            target=target,
            target_text="" if target is None else f"target {duration(target)}",
        )


def _replicas(outcome: PolicyOutcome, variant: VariantSetup, axes: Axes, anchor: str) -> Chart:
    course = [
        (point.seconds, seen)
        for point in outcome.points
        for seen in point.variants
        if seen.name == variant.name
    ]
    on_the_way = [(seconds, float(seen.ready + seen.starting)) for seconds, seen in course]
    ready = [(seconds, float(seen.ready)) for seconds, seen in course]
    spec = [(seconds, float(seen.spec)) for seconds, seen in course]
    wanted = [(seconds, seen.wanted) for seconds, seen in course]
    return Chart(
        title=f"{variant.name}: replicas",
        lines=(
            Line(name="starting", look="starting", course=on_the_way, is_stepped=True, is_area=True),
            Line(name="ready", look="ready", course=ready, is_stepped=True, is_area=True),
            Line(name="spec.replicas", look="spec", course=spec, is_stepped=True),
            Line(name="wanted", look="wanted", course=wanted, is_stepped=True),
        ),
        time=axes.time,
        values=linear(
            (max(seen.spec, seen.ready + seen.starting, seen.wanted or 0.0) for _, seen in course),
            least_step=1.0,
        ),
        marks=tuple(
            Mark(
                seconds=item.seconds,
                value=item.replicas,
                text=f"{clock(item.seconds)}  {item.sentence}",
                anchor=f"{anchor}-{position}",
            )
            for position, item in enumerate(outcome.decisions)
            if item.variant == variant.name
        ),
    )


def decided_charts(decided: BindingCourse, time: Scale, marks: tuple[Mark, ...] = ()) -> Iterator[Chart]:
    """Yield a chart of the replicas with the marks, of each metric, and of each of several targets."""
    courses = courses_of(decided)
    (number, replicas), (asked, recommended) = courses.decided, courses.recommended
    both = (
        Line(name=number, look="ready", course=replicas, is_stepped=True, is_area=True),
        Line(name=asked, look="wanted", course=recommended, is_stepped=True),
    )
    drawn = [
        (name, (Line(name=name, look="load", course=course, is_stepped=True),), ())
        for name, course in (*courses.metrics, *courses.targets)
    ]
    for title, lines, here in (("Replicas", both, marks), *drawn):
        yield Chart(
            title=title,
            lines=lines,
            time=time,
            values=linear(value for line in lines for _, value in line.course),
            value_text=lambda value: f"{value:,.6g}",
            marks=here,
        )
