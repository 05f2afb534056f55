"""The charts of one policy's outcome over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.closedloop.outcome import ModelPoint, PolicyOutcome, VariantPoint
from controller.closedloop.scenario import Model, Scenario, VariantSetup
from controller.commands.simulate.chart import Chart, Line, Mark
from controller.commands.simulate.decided_charts import decided_charts
from controller.commands.simulate.results import Results
from controller.commands.simulate.scale import Scale, linear, logarithmic, moments
from controller.commands.simulate.wording import clock, moment
from controller.sizing.capacity import duration


@dataclass(frozen=True, kw_only=True, slots=True)
class Axes:
    """Axes that are the same for every policy, so that their charts can be compared visually.

    Replicas have individual axes: next to a policy that starts a hundred, the others would be illegible.
    """

    time: Scale
    cost: Scale
    load: Mapping[str, Scale]
    """Axis of each model; the same for latencies."""

    ttft: Mapping[str, Scale]
    itl: Mapping[str, Scale]


def axes_of(results: Results) -> Axes:
    """Return axes that fit the charts of all policies."""
    points = [point for outcome in results.outcomes for point in outcome.points]
    models = {
        model.model_id: [seen for point in points for seen in point.models if seen.model_id == model.model_id]
        for model in results.scenario.models
    }
    targets = {model.model_id: model.targets for model in results.scenario.models}
    return Axes(
        time=moments(-results.scenario.warm_up_seconds, results.scenario.duration_seconds),
        cost=linear(point.cost_rate for point in points),
        load={name: linear(seen.arrivals_per_second for seen in course) for name, course in models.items()},
        ttft={
            name: logarithmic([targets[name].ttft_seconds, *(seen.ttft_p90_seconds for seen in course)])
            for name, course in models.items()
        },
        itl={
            name: linear([targets[name].itl_seconds, *(seen.itl_p90_seconds for seen in course)])
            for name, course in models.items()
        },
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


def _most_replicas(seen: VariantPoint) -> float:
    return max(seen.spec, seen.ready + seen.starting, seen.wanted or 0.0)


def _cost(outcome: PolicyOutcome, axes: Axes) -> Chart:
    course = [(point.seconds, point.cost_rate) for point in outcome.points]
    line = Line(name="of all replicas", look="cost", course=course, is_stepped=True, is_area=True)
    return _chart("Cost per hour", axes, axes.cost, line)


def _model(
    scenario: Scenario, outcome: PolicyOutcome, model: Model, axes: Axes, anchor: str
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


def _served_charts(model: Model, course: list[tuple[float, ModelPoint]], axes: Axes) -> Iterator[Chart]:
    name, targets = model.model_id, model.targets
    load = [(seconds, seen.arrivals_per_second) for seconds, seen in course]
    ttft = [(seconds, seen.ttft_p90_seconds) for seconds, seen in course]
    itl = [(seconds, seen.itl_p90_seconds) for seconds, seen in course]
    yield _chart("Load", axes, axes.load[name], Line(name="requests per second", look="load", course=load))
    for title, scale, seen, target in (
        ("Time to first token, p90", axes.ttft[name], ttft, targets.ttft_seconds),
        ("Time between tokens, p90", axes.itl[name], itl, targets.itl_seconds),
    ):
        yield Chart(
            title=title,
            lines=(Line(name="of requests that finished", look="latency", course=seen),),
            time=axes.time,
            values=scale,
            value_text=duration,
            time_text=moment,
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
        values=linear((_most_replicas(seen) for _, seen in course), least_step=1.0),
        value_text=_plain,
        time_text=moment,
        marks=tuple(
            Mark(
                seconds=item.seconds,
                value=item.replicas,
                text=f"{clock(item.seconds)}  {item.sentence}",
                anchor=f"{anchor}-{position}",
            )
            for position, item in enumerate(outcome.told)
            if item.variant == variant.name
        ),
    )


def _chart(title: str, axes: Axes, values: Scale, line: Line) -> Chart:
    return Chart(
        title=title, lines=(line,), time=axes.time, values=values, value_text=_plain, time_text=moment
    )


def _plain(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")
