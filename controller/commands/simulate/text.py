"""Results as text for a terminal: policies side by side, then the decisions with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import RenderableType
from rich.table import Table

from controller.closedloop.outcome import PolicyOutcome
from controller.commands.plan.terminal import Tone, labelled_line, table, uncut, wrapping_text
from controller.commands.simulate.decided_text import over_time
from controller.commands.simulate.results import Results
from controller.commands.simulate.wording import clock, model_row, model_text, row_of, summary

_HEADS: Final = (
    "POLICY", "COST", "MISSED", "TTFT", "ITL", "LOST", "ABANDONED", "TTFT-P90", "TTFT-P99", "ITL-P99",
    "REVERSALS/H", "PEAK",
)  # fmt: skip
_MODEL_HEADS: Final = (
    "POLICY", "MODEL", "REQUESTS", "MISSED", "TTFT", "ITL", "LOST", "ABANDONED", "TTFT-P99", "ITL-P99",
)  # fmt: skip
_MOST_CHANGES: Final = 40


def text_parts(results: Results) -> Iterator[RenderableType]:
    """Yield the summary, a table of policies, one of models if there are several, and the decisions.

    For an AutoscalingPolicy, they begin with its metrics and replicas over the scored time.
    """
    yield wrapping_text(summary(results))
    for model in results.scenario.models:
        yield labelled_line("  ", model_text(results.scenario, model))
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
    for item in outcome.told:
        was = before.get(item.variant, item.current_replicas)
        before[item.variant] = item.replicas
        if item.seconds >= 0 and item.replicas != was:
            changes.append(labelled_line(f"  {clock(item.seconds)}  ", item.sentence))
    if changes:
        yield ""
        yield wrapping_text(f"what {outcome.policy} decided (HPAs follow later):", Tone.HEADING)
        yield from changes[:_MOST_CHANGES]
        if len(changes) > _MOST_CHANGES:
            yield f"  and {len(changes) - _MOST_CHANGES} more: -o json lists all decisions"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    made = table(heads, words={"POLICY", "MODEL", "PEAK"})
    for row in rows:
        made.add_row(*map(wrapping_text, row))
    return uncut(made)
