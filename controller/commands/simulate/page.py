"""Results as one self-contained HTML page: no script, no other file, no network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from controller.commands.plan.template import render
from controller.commands.simulate.chart import HEIGHT, MOST_POINTS, WIDTH
from controller.commands.simulate.charts import axes_of, charts_of
from controller.commands.simulate.results import Results
from controller.commands.simulate.wording import (
    amount,
    clock,
    model_row,
    model_text,
    percent,
    row_of,
    summary,
)


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
