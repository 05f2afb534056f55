"""Results as one self-contained HTML page: no script, no other file, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from controller.commands.plan.page import render
from controller.commands.simulate.chart import (
    HEIGHT,
    MOST_POINTS,
    WIDTH,
    Axis,
    Chart,
    ChartMark,
    Line,
    linear,
    logarithmic,
    time_scale,
)
from controller.commands.simulate.results import (
    Results,
    amount,
    clock,
    courses_of,
    model_row,
    model_text,
    moment,
    percent,
    row_of,
    summary,
)
from controller.simulation.outcome import BindingCourse, ModelPoint, Point, PolicyOutcome
from controller.simulation.scenario import ScenarioModel, VariantSetup
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
        charts_of=_Charts(results).of,
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


class _Charts:
    """Charts of policies, whose axes are the same for every policy, so that they can be compared visually.

    Replicas have individual axes: next to a policy that starts a hundred, the others would be illegible.
    """

    def __init__(self, results: Results) -> None:
        self._scenario = scenario = results.scenario
        points = [point for outcome in results.outcomes for point in outcome.points]
        self._time = time_scale(-scenario.warm_up_seconds, scenario.duration_seconds)
        self._cost = linear(point.cost_rate for point in points)
        self._axes = {model.model_id: _axes(model, points) for model in scenario.models}

    def of(self, outcome: PolicyOutcome, anchor: str) -> Mapping[str, Sequence[Chart]]:
        """Return the charts by title: of each model, the total cost, and what a policy decided.

        The lower bound, which is not simulated, has none.
        """
        if not outcome.points:
            return {}
        charts: dict[str, list[Chart]] = {}
        for model in self._scenario.models:
            variants = self._scenario.variants_of(model.model_id)
            replicas = (self._replicas(outcome, item, anchor) for item in variants)
            charts[model.model_id] = [*self._served_charts(outcome, model), *replicas]
        title = "All models" if len(charts) > 1 else next(iter(charts), "")
        course = [(point.seconds, point.cost_rate) for point in outcome.points]
        line = Line(name="of all replicas", look="cost", course=course, is_stepped=True, is_area=True)
        cost = Chart(title="Cost per hour", lines=(line,), time=self._time, values=self._cost)
        decided = {
            f"Decided for {', '.join(item.targets)}": list(decided_charts(item, self._time))
            for item in outcome.decided
        }
        return charts | {title: [*charts.get(title, ()), cost]} | decided

    def _served_charts(self, outcome: PolicyOutcome, model: ScenarioModel) -> Iterator[Chart]:
        """Yield the charts of the load and the latencies of a model."""
        course = [(point.seconds, seen) for point in outcome.points for seen in _of_model(point, model)]
        load, ttft, itl = self._axes[model.model_id]
        arrivals = [(seconds, seen.arrivals_per_second) for seconds, seen in course]
        line = Line(name="requests per second", look="load", course=arrivals)
        yield Chart(title="Load", lines=(line,), time=self._time, values=load)
        first_tokens = [(seconds, seen.ttft_p90_seconds) for seconds, seen in course]
        gaps = [(seconds, seen.itl_p90_seconds) for seconds, seen in course]
        for title, scale, latencies, target in (
            ("Time to first token, p90", ttft, first_tokens, model.targets.ttft_seconds),
            ("Time between tokens, p90", itl, gaps, model.targets.itl_seconds),
        ):
            yield Chart(
                title=title,
                lines=(Line(name="of requests that finished", look="latency", course=latencies),),
                time=self._time,
                values=scale,
                value_text=duration,
                target=target,
                target_text="" if target is None else f"target {duration(target)}",
            )

    def _replicas(self, outcome: PolicyOutcome, variant: VariantSetup, anchor: str) -> Chart:
        course = [
            (point.seconds, seen)
            for point in outcome.points
            for seen in point.variants
            if seen.name == variant.name
        ]
        on_the_way = [(seconds, float(seen.ready + seen.starting)) for seconds, seen in course]
        ready = [(seconds, float(seen.ready)) for seconds, seen in course]
        spec = [(seconds, float(seen.spec)) for seconds, seen in course]
        recommended = [(seconds, seen.wanted) for seconds, seen in course]
        lines = (
            Line(name="starting", look="starting", course=on_the_way, is_stepped=True, is_area=True),
            Line(name="ready", look="ready", course=ready, is_stepped=True, is_area=True),
            Line(name="spec.replicas", look="spec", course=spec, is_stepped=True),
            Line(name="wanted", look="wanted", course=recommended, is_stepped=True),
        )
        marks = tuple(
            ChartMark(
                seconds=item.seconds,
                value=item.replicas,
                text=f"{clock(item.seconds)}  {item.sentence}",
                anchor=f"{anchor}-{position}",
            )
            for position, item in enumerate(outcome.decisions)
            if item.variant == variant.name
        )
        highest = linear((value for line in lines for _, value in line.course), least_step=1.0)
        return Chart(
            title=f"{variant.name}: replicas", lines=lines, time=self._time, values=highest, marks=marks
        )


def _of_model(point: Point, model: ScenarioModel) -> Iterator[ModelPoint]:
    return (seen for seen in point.models if seen.model_id == model.model_id)


def _axes(model: ScenarioModel, points: Sequence[Point]) -> tuple[Axis, Axis, Axis]:
    """Return the axes of the load and the latencies of a model."""
    course = [seen for point in points for seen in _of_model(point, model)]
    return (
        linear(seen.arrivals_per_second for seen in course),
        logarithmic([model.targets.ttft_seconds, *(seen.ttft_p90_seconds for seen in course)]),
        linear([model.targets.itl_seconds, *(seen.itl_p90_seconds for seen in course)]),
    )


def decided_charts(decided: BindingCourse, time: Axis, marks: tuple[ChartMark, ...] = ()) -> Iterator[Chart]:
    """Yield a chart of the replicas with the marks, of each metric, and of each of several targets."""
    courses = courses_of(decided)
    (number, replicas), (recommended_text, recommended) = courses.decided, courses.recommended
    both = (
        Line(name=number, look="ready", course=replicas, is_stepped=True, is_area=True),
        Line(name=recommended_text, look="wanted", course=recommended, is_stepped=True),
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
