"""The pages of the dashboard, rendered by the server: no script, no other file, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from controller.commands.dashboard.history import DecisionEvent, History, ModelSample
from controller.commands.dashboard.what_if import MOST_FACTOR, MOST_NODES, Answer, Question
from controller.commands.plan.layout import by_type, codes_for, codes_of, layouts, running_layouts
from controller.commands.plan.page import blocks, colours, pointed_at, render
from controller.commands.plan.text import helps, request_text
from controller.commands.simulate.chart import (
    HEIGHT,
    WIDTH,
    Axis,
    Chart,
    ChartMark,
    Course,
    Line,
    linear,
    time_scale,
)
from controller.commands.status.fleet import FleetState, ModelState, Severity
from controller.commands.status.text import (
    USE_HEADS,
    headline,
    model_row,
    money,
    seconds_text,
    use_cells,
    worst,
)
from controller.planning.inputs import PlanningInputs
from controller.planning.wording import percent, rate_text

MOST_DRAWN: Final = 20
"""Models whose charts are drawn; a link draws those of another one."""

_MOST_OPTIONS: Final = 2_000
_MOST_ROWS: Final = 200
_MOST_SHORT: Final = 20
_WHOLE: Final = Axis(low=0.0, high=1.0, ticks=(0.0, 0.5, 1.0))
_LOOKS: Final = {Severity.CRITICAL: "bad", Severity.ERROR: "bad", Severity.WARNING: "advice"}
_MODEL_HEADS: Final = (
    "MODEL", "PRIO", "REASON", "UNMET", "REQ/S", "TTFT", "ITL", "READY", "GRANTED", "WANTED", "COST/H",
    "SAVED/H", "ON",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Everything that a page shows."""

    host: str
    fleet: FleetState
    inputs: PlanningInputs
    history: History
    decisions: Sequence[DecisionEvent]
    interval_seconds: float


def fleet_page(view: View, *, model: str = "", problem: str = "") -> str:
    """Return the page of the fleet; the charts of one `model`, as NAMESPACE/MODEL, if it is given.

    `problem` is why the cluster could not be read since; empty if it could.
    """
    fleet, snapshot = view.fleet, view.inputs.snapshot
    ordered = sorted(snapshot.variants, key=lambda item: (item.priority, item.key))
    codes = codes_for([item.key for item in ordered])
    drawn = [item for item in fleet.models if model in ("", name_of(item))][:MOST_DRAWN]
    return _render(
        "fleet.html",
        view,
        headline=headline(fleet),
        verdict="bad" if fleet.short else _LOOKS[fleet.problems[0].severity] if fleet.problems else "good",
        tiles=[*_tiles(fleet)],
        fleet=fleet,
        looks=_LOOKS,
        model_heads=_MODEL_HEADS,
        model_rows=[(model_row(item), name_of(item), _look(item)) for item in fleet.models[:_MOST_ROWS]],
        more_models=max(0, len(fleet.models) - _MOST_ROWS),
        short=fleet.short[:_MOST_SHORT],
        more_short=max(0, len(fleet.short) - _MOST_SHORT),
        problem=problem,
        use_heads=USE_HEADS,
        use_rows=[use_cells(item) for item in fleet.accelerators or ()],
        nodes=by_type(running_layouts(snapshot, codes)),
        codes=codes,
        colours=colours(codes),
        variants={item.key: item for item in ordered},
        charts=[(name_of(item), [*_charts(item, view)]) for item in drawn],
        is_cut=len(drawn) < len(fleet.models),
        model=model,
        decisions=view.decisions,
    )


def what_if_page(view: View, answer: Answer) -> str:
    """Return the page about a changed cluster or another demand."""
    plan, codes = answer.plan, codes_of(answer.plan)
    effects = answer.effects
    return _render(
        "what_if.html",
        view,
        question=answer.question.text,
        answer=answer,
        effects=[item for item in effects if item.is_changed],
        unchanged=len([item for item in effects if not item.is_changed]),
        costs=(answer.before.cost, plan.cost),
        short=[item for item in effects if item.unmet[1]],
        requests=[request_text(item, answer.snapshot) for item in plan.requests],
        reliefs={
            f"{item.namespace}/{item.model_id}": helps(item.reliefs[0])
            for item in plan.decisions
            if item.reliefs
        },
        nodes=by_type(layouts(answer.snapshot, plan)),
        codes=codes,
        colours=colours(codes),
        variants={item.key: item for item in answer.snapshot.variants},
        form=_form(view, answer.question),
    )


def question_page(view: View, question: Question, problems: Sequence[str]) -> str:
    """Return the page with the form of a question, and why it cannot be answered, if so."""
    return _render("problem.html", view, problems=problems, form=_form(view, question))


def message_page(title: str, message: str) -> str:
    """Return a page with one message."""
    return render("controller.commands.dashboard", "message.html", title=title, message=message)


def login_page(problem: str) -> str:
    """Return the page with the form to log in, and why that failed."""
    return render("controller.commands.dashboard", "login.html", title="Stowplan", problem=problem)


def name_of(model: ModelState) -> str:
    """Return the name of a model in links."""
    return f"{model.namespace}/{model.model_id}"


def _render(template: str, view: View, **values: object) -> str:
    return render(
        "controller.commands.dashboard",
        template,
        title=f"Stowplan: {view.host}",
        host=view.host,
        time=view.fleet.time,
        interval=view.interval_seconds,
        blocks=blocks,
        pointed_at=pointed_at,
        percent=percent,
        price=money,
        moment=_moment,
        width=WIDTH,
        height=HEIGHT,
        **values,
    )


def _tiles(fleet: FleetState) -> Iterator[tuple[str, str]]:
    met = sum(item.unmet == 0 for item in fleet.models)
    unknown = sum(item.unmet is None for item in fleet.models)
    yield (
        f"{met} of {len(fleet.models)}",
        "models whose demand is met" + (f", {unknown} not known" if unknown else ""),
    )
    if fleet.cost_per_hour is not None:
        yield money(fleet.cost_per_hour), "cost per hour"
    if (saved := fleet.saved_per_hour) is not None:
        what = "saved" if saved >= 0 else "more paid"
        yield money(abs(saved)), f"{what} per hour by following the advice"
    uses = fleet.accelerators or ()
    free, pending = ([use.free for use in uses], [use.pending for use in uses])
    if uses and None not in free:
        total = sum(item.total for item in uses)
        yield f"{sum(number or 0 for number in free)} of {total}", "accelerators free"
        yield str(sum(number or 0 for number in pending)), "accelerators pending"
    yield str(len(fleet.problems)), "problem" if len(fleet.problems) == 1 else "problems"


def _look(model: ModelState) -> str:
    state = worst(model)
    if model.unmet or state.is_ready is False:
        return "bad"
    return "" if state.is_ready else "advice"


def _charts(model: ModelState, view: View) -> Iterator[Chart]:
    samples = view.history.get((model.namespace, model.model_id), ())
    if not samples:
        return
    time = time_scale(samples[0].time, samples[-1].time)
    load = [(item.time, item.requests_per_second) for item in samples]
    yield Chart(
        title="Requests per second",
        lines=(Line(name="load", look="load", course=load),),
        time=time,
        values=linear(value for _, value in load),
        value_text=rate_text,
    )
    names = {item.name for item in model.variants}
    made = [
        (place, item)
        for place, item in enumerate(view.decisions)
        if item.namespace == model.namespace and item.name in names
    ]
    yield _replicas(samples, time, made)
    yield from _latencies(model, samples, time)


def _replicas(samples: Sequence[ModelSample], time: Axis, made: Sequence[tuple[int, DecisionEvent]]) -> Chart:
    """Return the chart of replicas, with a mark for each decision, given with its place in the list."""
    ready = [(item.time, None if item.ready is None else float(item.ready)) for item in samples]
    granted = [(item.time, None if item.granted is None else float(item.granted)) for item in samples]
    return Chart(
        title="Replicas",
        lines=(
            Line(name="ready", look="ready", course=ready, is_stepped=True, is_area=True),
            Line(name="granted", look="wanted", course=granted, is_stepped=True),
        ),
        time=time,
        values=linear((value for _, value in [*ready, *granted]), least_step=1.0),
        marks=tuple(
            ChartMark(
                seconds=item.time.timestamp(),
                value=_at(granted, item.time.timestamp()),
                text=f"{item.time:%H:%M:%S} {item.message}",
                anchor=f"decision-{place}",
            )
            for place, item in made
            if time.low <= item.time.timestamp() <= time.high
        ),
    )


def _at(course: Course, seconds: float) -> float:
    """Return the value of a course at a time: that of the first sample after it."""
    return next((value for time, value in course if time >= seconds and value is not None), 0.0)


def _latencies(model: ModelState, samples: Sequence[ModelSample], time: Axis) -> Iterator[Chart]:
    ttft = [(item.time, item.within_ttft) for item in samples]
    itl = [(item.time, item.within_itl) for item in samples]
    if not model.service_level:
        return
    promised = float(model.service_level["promised"])
    targets = [
        f"{name} {seconds_text(float(model.service_level[member]))}"
        for name, member in (("TTFT", "ttftTarget"), ("ITL", "itlTarget"))
        if member in model.service_level
    ]
    yield Chart(
        title=f"Requests of the last hour within {' and '.join(targets)}",
        lines=(Line(name="TTFT", look="latency", course=ttft), Line(name="ITL", look="cost", course=itl)),
        time=time,
        values=_WHOLE,
        value_text=percent,
        target=promised,
        target_text=f"{percent(promised)} promised",
    )


def _moment(seconds: float) -> str:
    """Return a time of day in UTC, without seconds if these are zero."""
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}".removesuffix(":00")


def _form(view: View, question: Question) -> Mapping[str, object]:
    """Return the choices of the form, and what is chosen."""
    nodes = view.inputs.snapshot.nodes
    shapes = sorted(
        {f"{node.accelerator}x{node.accelerators_allocatable}" for node in nodes if node.accelerator}
    )
    made = question.addition
    return {
        "shapes": shapes,
        "shape": f"{made.accelerator}x{made.accelerators}" if made else "",
        "nodes": made.nodes if made else 0,
        "most_nodes": MOST_NODES,
        "names": sorted(node.name for node in nodes)[:_MOST_OPTIONS],
        "drained": question.drained,
        "factor": f"{question.factor:g}",
        "most_factor": f"{MOST_FACTOR:g}",
        "models": [name_of(item) for item in view.fleet.models][:_MOST_OPTIONS],
        "model": question.model,
    }
