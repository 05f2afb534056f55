"""Results as one page for a browser, which needs nothing else: no script, no other file, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from controller.offline.markup import Content, Markup, document, section, table, tag
from controller.simulating.chart import MOST_POINTS
from controller.simulating.page_policy import axes_of, policy_part
from controller.simulating.results import Results
from controller.simulating.style import CHART_STYLE
from controller.simulating.wording import model_row, model_text, row_of, summary

_HEADS: Final = (
    "Policy", "Cost", "Missed", "TTFT missed", "ITL missed", "Never finished", "TTFT p90", "TTFT p99",
    "ITL p99", "Reversals/h", "Most replicas",
)  # fmt: skip
_MODEL_HEADS: Final = (
    "Policy", "Model", "Requests", "Missed", "TTFT missed", "ITL missed", "Never finished", "TTFT p99",
    "ITL p99",
)  # fmt: skip
_WORDS: Final = frozenset({"Policy", "Model", "Most replicas"})
_NUMBERS: Final = frozenset({*_HEADS, *_MODEL_HEADS} - _WORDS)
_MEANING: Final = (
    "Cost is that of the replicas while they hold accelerators, over the scored time. Missed are requests "
    "that took longer than a target of theirs or never finished."
)
_MOST_OPEN: Final = 3
"""Policies whose charts are shown at once; of more, only the first one's."""


def page(results: Results) -> str:
    """Return the whole page."""
    return document(
        f"Stowplan: {results.scenario.name}",
        CHART_STYLE,
        tag("h1", "Simulation"),
        tag("p", summary(results), class_="verdict"),
        tag("ul", *(tag("li", model_text(results.scenario, model)) for model in results.scenario.models)),
        *_warnings(results),
        section("Policies", *_policies(results)),
        section("Over time", *_over_time(results)),
    )


def _warnings(results: Results) -> Iterator[Markup]:
    if results.warnings:
        told = tag("ul", *(tag("li", text) for text in results.warnings), class_="advice")
        yield section("Warnings", told)


def _policies(results: Results) -> Iterator[Markup]:
    rows = [
        _row(_HEADS, row_of(outcome, results.scenario), position)
        for position, outcome in enumerate(results.outcomes, start=1)
    ]
    yield table(_HEADS, rows, numbers=_NUMBERS)
    yield tag("p", _MEANING, class_="faint")
    if len(results.scenario.models) > 1:
        models = [
            _row(_MODEL_HEADS, model_row(outcome, model, results.scenario), position)
            for position, outcome in enumerate(results.outcomes, start=1)
            for model in outcome.models
        ]
        yield table(_MODEL_HEADS, models, numbers=_NUMBERS)


def _row(heads: Sequence[str], cells: Sequence[str], position: int) -> Markup:
    return tag("tr", *(_cell(*pair, position) for pair in zip(heads, cells, strict=True)), class_="row")


def _cell(head: str, text: str, position: int) -> Markup:
    content: Content = tag("a", text, href=f"#policy-{position}") if head == "Policy" else text
    return tag("td", content, class_="number" if head in _NUMBERS else "name")


def _over_time(results: Results) -> Iterator[Markup]:
    axes, count = axes_of(results), len(results.outcomes)
    longest = max((len(outcome.points) for outcome in results.outcomes), default=0)
    remarks = [
        "All policies have the same axes, except for replicas.",
        "Dots are decisions: point at one to read it.",
    ]
    if results.scenario.warm_up_seconds:
        remarks.append("The shaded beginning is the warm-up, which is not scored.")
    if longest > MOST_POINTS:
        remarks.append(f"Each point is the greatest value of {-(-longest // MOST_POINTS)} intervals.")
    yield tag("p", " ".join(remarks), class_="faint")
    for position in range(count):
        is_open = count <= _MOST_OPEN or position == 0
        yield policy_part(results, position, axes, is_open=is_open)
