"""The results of a simulation: as one JSON document, and as text: policies side by side, and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec
from rich.console import RenderableType
from rich.table import Table

from apiserver.schema.json import Json
from controller.commands.plan.terminal import Tone, labelled_line, table, uncut, wrapping_text
from controller.commands.simulate.chart import Course, thin
from controller.commands.simulate.engines import EngineOrigins
from controller.simulation.outcome import BindingCourse, ModelOutcome, PolicyOutcome
from controller.simulation.scenario import Scenario, ScenarioModel, VariantSetup
from controller.sizing.capacity import duration
from controller.sizing.records import Targets

_LEAST_INTEGER: Final = 100
"""The cost from which integers have at least three digits."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """One scenario under several policies, in the requested order."""

    scenario: Scenario
    outcomes: tuple[PolicyOutcome, ...]
    warnings: tuple[str, ...] = ()
    origins: tuple[EngineOrigins, ...] = ()
    """Where the numbers about exported engines are from."""

    assumed: tuple[str, ...] = ()
    """Exported workloads for which variants are assumed."""


def as_document(results: Results) -> Json:
    """Return the scenario and every outcome with its time series; shares are 0 to 1."""
    scenario = results.scenario
    return {
        "scenario": {
            "name": scenario.name,
            "duration_seconds": scenario.duration_seconds,
            "warm_up_seconds": scenario.warm_up_seconds,
            "patience_seconds": scenario.patience_seconds,
            "routing": msgspec.to_builtins(scenario.routing),
            "seed": scenario.seed,
            "models": [
                {
                    "model_id": model.model_id,
                    "priority": model.priority,
                    "targets": msgspec.to_builtins(model.targets),
                }
                for model in scenario.models
            ],
            "variants": [msgspec.to_builtins(variant) for variant in scenario.variants],
            "nodes": [msgspec.to_builtins(group) for group in scenario.nodes],
            "engines": [msgspec.to_builtins(item) for item in results.origins],
        },
        "warnings": list(results.warnings),
        "assumed": list(results.assumed),
        "outcomes": [
            {**msgspec.to_builtins(item), "reversals_per_hour": item.reversals_per_hour}
            for item in results.outcomes
        ],
    }


def summary(results: Results) -> str:
    """Return what was simulated, in one line."""
    scenario = results.scenario
    requests = results.outcomes[0].requests if results.outcomes else 0
    start = "warm" if scenario.warm_up_seconds else "cold"
    rate = requests / scenario.duration_seconds
    patience = scenario.patience_seconds
    waiting = "unlimited patience" if patience is None else f"patience {patience:g} s"
    return (
        f"{scenario.name}: {requests} requests in {clock(scenario.duration_seconds)}"
        f" ({rate:.1f}/s), {start} start, seed {scenario.seed}, {waiting}"
    )


def model_text(scenario: Scenario, model: ScenarioModel) -> str:
    """Return a model's targets and its variants, in one line."""
    targets = {"TTFT": model.targets.ttft_seconds, "ITL": model.targets.itl_seconds}
    texts = [f"{name} {duration(seconds)}" for name, seconds in targets.items() if seconds is not None]
    ways = (
        f"{item.name} ({item.accelerator} x{item.accelerators_per_replica}, {item.price_per_hour:g} per hour,"
        f" starts in {item.start_up_seconds:g} s)"
        for item in scenario.variants_of(model.model_id)
    )
    return f"{model.model_id}: {' and '.join(texts) or 'no targets'}; {', '.join(ways)}"


def engine_text(variant: VariantSetup, origins: EngineOrigins) -> str:
    """Return the numbers about an exported engine, and where each is from, in one line."""
    engine, basis = variant.profile, f": {origins.basis}" if origins.basis else ""
    times = f"alpha {engine.alpha_ms:.3g}, beta {engine.beta_ms:.3g}, delta {engine.delta_ms:.3g} ms"
    return (
        f"{variant.name}: {times} ({origins.step_times}{basis}), KV cache {engine.kv_tokens} tokens"
        f" ({origins.kv_tokens}), starts in {variant.start_up_seconds:.0f} s ({origins.start_up})"
    )


def target_warnings(scenario: Scenario) -> Iterator[str]:
    """Yield a warning for each model without latency targets."""
    for model in scenario.models:
        if model.targets == Targets():
            yield (
                f"{model.model_id} has no latency targets, so none of its requests can be late: set"
                " ttftMilliseconds and itlMilliseconds in a scenario, or slo-ttft and slo-tpot in a"
                " service class"
            )


def metric_warnings(outcomes: Iterable[PolicyOutcome]) -> Iterator[str]:
    """Yield a warning for each policy with metrics that the simulated engine does not report."""
    for outcome in outcomes:
        names = dict.fromkeys(name for decided in outcome.decided for name in decided.unreported)
        if names:
            missing = ", ".join(names)
            yield f"{outcome.policy}: the simulated engine does not report {missing}: nothing is scaled down"


def row_of(outcome: PolicyOutcome, scenario: Scenario) -> tuple[str, ...]:
    """Return a policy's cost, missed shares as `_missed_shares` lists them, latencies, and reversals.

    For the lower bound, which is not simulated, most are `-`.
    """
    cost, peaks = amount(outcome.cost), [f"{item.name} {item.peak_replicas}" for item in outcome.variants]
    if not outcome.points and not outcome.models:
        return outcome.policy, cost, percent(outcome.missed), *["-"] * 8, ", ".join(peaks)
    shares, reversals = _missed_shares(outcome, scenario.models), f"{outcome.reversals_per_hour:.1f}"
    return outcome.policy, cost, *shares, *_slowest(outcome.models), reversals, ", ".join(peaks)


def _slowest(models: Sequence[ModelOutcome]) -> tuple[str, str, str]:
    """Return each quantile of the model with the highest value."""

    def worst(values: list[float | None]) -> str:
        known = [value for value in values if value is not None]
        return duration(max(known)) if known else "-"

    return (
        worst([model.ttft_seconds.p90 for model in models]),
        worst([model.ttft_seconds.p99 for model in models]),
        worst([model.itl_seconds.p99 for model in models]),
    )


def _missed_shares(outcome: PolicyOutcome | ModelOutcome, models: Sequence[ScenarioModel]) -> tuple[str, ...]:
    """Return missed shares: all, TTFT, ITL, never finished, abandoned.

    It is `-` where no model has such a target.
    """
    has_ttft = any(model.targets.ttft_seconds is not None for model in models)
    has_itl = any(model.targets.itl_seconds is not None for model in models)
    shares = (
        (has_ttft or has_itl, outcome.missed),
        (has_ttft, outcome.missed_ttft),
        (has_itl, outcome.missed_itl),
        (True, outcome.never_finished),
        (True, outcome.abandoned),
    )
    return tuple(percent(share) if is_known else "-" for is_known, share in shares)


def model_row(outcome: PolicyOutcome, model: ModelOutcome, scenario: Scenario) -> tuple[str, ...]:
    """Return the row of one model under a policy, with its number of requests."""
    _, ttft, itl = _slowest([model])
    return (
        outcome.policy,
        model.model_id,
        str(model.requests),
        *_missed_shares(model, [item for item in scenario.models if item.model_id == model.model_id]),
        ttft,
        itl,
    )


def amount(cost: float) -> str:
    """Return a cost with three significant digits, or as an integer from 100: 0.12, 1.67, 31, 1250."""
    if cost >= _LEAST_INTEGER:
        return f"{cost:.0f}"
    return f"{Decimal(f'{cost:.3g}'):f}"


def percent(share: float) -> str:
    """Return a share of 1 as `3.51%`."""
    return f"{100 * share:.2f}%"


def clock(seconds: float) -> str:
    """Return a time as `0:02:30`; one of the warm-up, which is negative, as `-0:02:30`."""
    minutes, rest = divmod(abs(round(seconds)), 60)
    return f"{'-' if round(seconds) < 0 else ''}{minutes // 60}:{minutes % 60:02}:{rest:02}"


def moment(seconds: float) -> str:
    """Return a time for the time axis, without seconds if these are zero."""
    text = clock(seconds)
    return text.removesuffix(":00") if text.count(":") > 1 and round(seconds) % 60 == 0 else text


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
    title = "recommended" if decided.is_alike else "recommended, of capacity 1"
    names = points[0].values if points else ()
    targets = decided.targets if len(decided.targets) > 1 else ()
    return Courses(
        metrics=[(name, [(point.seconds, point.values[name]) for point in points]) for name in names],
        recommended=(title, [(point.seconds, point.recommended) for point in points]),
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
