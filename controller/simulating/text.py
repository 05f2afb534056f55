"""Results in lines for a terminal: policies side by side, then what was decided and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from controller.closedloop.outcome import Outcome
from controller.offline.spans import harmless
from controller.simulating.results import Results
from controller.simulating.wording import clock, model_row, model_text, row_of, summary

_HEADS: Final = (
    "POLICY", "COST", "MISSED", "TTFT", "ITL", "LOST", "TTFT-P90", "TTFT-P99", "ITL-P99", "REVERSALS/H",
    "PEAK",
)  # fmt: skip
_MODEL_HEADS: Final = ("POLICY", "MODEL", "REQUESTS", "MISSED", "TTFT", "ITL", "LOST", "TTFT-P99", "ITL-P99")
_LEFT: Final = frozenset({"POLICY", "MODEL", "PEAK"})
_MOST_CHANGES: Final = 40


def text_lines(results: Results) -> Iterator[str]:
    """Yield the lines: what was played, a table of policies, models if there are several, and decisions."""
    yield harmless(summary(results))
    for model in results.scenario.models:
        yield f"  {harmless(model_text(results.scenario, model))}"
    yield ""
    yield from _table(_HEADS, [row_of(outcome, results.scenario) for outcome in results.outcomes])
    for outcome in results.outcomes:
        if outcome.note:
            yield f"{harmless(outcome.policy)}: {harmless(outcome.note)}"
    if len(results.scenario.models) > 1:
        yield ""
        rows = [
            model_row(outcome, model, results.scenario)
            for outcome in results.outcomes
            for model in outcome.models
        ]
        yield from _table(_MODEL_HEADS, rows)
    for outcome in results.outcomes:
        yield from _changes(outcome)
    for warning in results.warnings:
        yield f"warning: {harmless(warning)}"


def _changes(outcome: Outcome) -> Iterator[str]:
    """Yield the decisions that changed a number of replicas while it was scored.

    One for the replicas that there are changes nothing: the autoscaler has not followed the one before.
    """
    changes, before = [], dict[str, int]()
    for item in outcome.told:
        was = before.get(item.variant)
        before[item.variant] = item.replicas
        is_new = was is not None and was != item.replicas
        if item.seconds >= 0 and is_new and item.replicas != item.current_replicas:
            changes.append(f"  {clock(item.seconds)}  {harmless(item.sentence)}")
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
