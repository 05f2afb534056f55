"""Results in lines for a terminal: policies side by side, then what was decided and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from controller.closedloop.outcome import ModelOutcome, Outcome
from controller.closedloop.scenario import Model, VariantSetup
from controller.offline.spans import harmless
from controller.simulating.results import Results

_HEADS: Final = (
    "POLICY", "COST", "MISSED", "TTFT", "ITL", "LOST", "TTFT-P90", "TTFT-P99", "ITL-P99", "REVERSALS/H",
    "PEAK",
)  # fmt: skip
_MODEL_HEADS: Final = ("POLICY", "MODEL", "REQUESTS", "MISSED", "TTFT", "ITL", "LOST", "TTFT-P99", "ITL-P99")
_LEFT: Final = frozenset({"POLICY", "MODEL", "PEAK"})
_MOST_CHANGES: Final = 40


def text_lines(results: Results) -> Iterator[str]:
    """Yield the lines: what was played, a table of policies, models if there are several, and decisions."""
    yield from _played(results)
    yield ""
    yield from _table(_HEADS, [_row(outcome) for outcome in results.outcomes])
    for outcome in results.outcomes:
        if outcome.note:
            yield f"{harmless(outcome.policy)}: {harmless(outcome.note)}"
    if len(results.scenario.models) > 1:
        yield ""
        rows = [_model_row(outcome, model) for outcome in results.outcomes for model in outcome.models]
        yield from _table(_MODEL_HEADS, rows)
    for outcome in results.outcomes:
        yield from _changes(outcome)
    for warning in results.warnings:
        yield f"warning: {harmless(warning)}"


def _played(results: Results) -> Iterator[str]:
    scenario = results.scenario
    requests = results.outcomes[0].requests if results.outcomes else 0
    start = "warm" if scenario.warm_up_seconds else "cold"
    rate = requests / scenario.duration_seconds
    yield (
        f"{harmless(scenario.name)}: {requests} requests in {_clock(scenario.duration_seconds)}"
        f" ({rate:.1f}/s), {start} start, seed {scenario.seed}"
    )
    for model in scenario.models:
        ways = ", ".join(map(_way, scenario.variants_of(model.model_id)))
        yield f"  {harmless(model.model_id)}: {_targets(model)}; {harmless(ways)}"


def _way(variant: VariantSetup) -> str:
    place = f"{variant.accelerator} x{variant.accelerators_per_replica}"
    price, start_up = f"{variant.price_per_hour:g} per hour", f"starts in {variant.start_up_seconds:g} s"
    return f"{variant.name} ({place}, {price}, {start_up})"


def _targets(model: Model) -> str:
    said = {"TTFT": model.targets.ttft_seconds, "ITL": model.targets.itl_seconds}
    kept = [f"{name} {_span(seconds)}" for name, seconds in said.items() if seconds is not None]
    return " and ".join(kept) or "no targets"


def _row(outcome: Outcome) -> tuple[str, ...]:
    slowest = _slowest(outcome.models)
    return (
        outcome.policy,
        f"{outcome.cost:.0f}",
        *map(_percent, (outcome.missed, outcome.missed_ttft, outcome.missed_itl, outcome.never_finished)),
        *slowest,
        f"{outcome.reversals_per_hour:.1f}",
        ", ".join(f"{item.name} {item.peak_replicas}" for item in outcome.variants),
    )


def _slowest(models: Sequence[ModelOutcome]) -> tuple[str, str, str]:
    """Return the quantiles of the model that is worst off in each."""

    def worst(values: list[float | None]) -> str:
        known = [value for value in values if value is not None]
        return _span(max(known)) if known else "-"

    return (
        worst([model.ttft_seconds.p90 for model in models]),
        worst([model.ttft_seconds.p99 for model in models]),
        worst([model.itl_seconds.p99 for model in models]),
    )


def _model_row(outcome: Outcome, model: ModelOutcome) -> tuple[str, ...]:
    _, ttft, itl = _slowest([model])
    return (
        outcome.policy,
        model.model_id,
        str(model.requests),
        *map(_percent, (model.missed, model.missed_ttft, model.missed_itl, model.never_finished)),
        ttft,
        itl,
    )


def _changes(outcome: Outcome) -> Iterator[str]:
    """Yield the decisions that changed a number of replicas while it was scored."""
    changes, before = [], dict[str, int]()
    for item in outcome.told:
        was = before.get(item.variant)
        before[item.variant] = item.replicas
        if item.seconds >= 0 and was is not None and was != item.replicas:
            changes.append(f"  {_clock(item.seconds)}  {harmless(item.sentence)}")
    if changes:
        yield ""
        yield f"what {harmless(outcome.policy)} changed:"
        yield from changes[:_MOST_CHANGES]
        if len(changes) > _MOST_CHANGES:
            yield f"  and {len(changes) - _MOST_CHANGES} changes more: -o json lists all of them"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [tuple(heads), *(tuple(map(harmless, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        aligned = (
            cell.ljust(width) if head in _LEFT else cell.rjust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        )
        yield "  ".join(aligned).rstrip()


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _span(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
