"""Every strategy's answer on the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from controller.offline.comparison import Compared, comparison_row, explanations
from controller.offline.markup import Markup, section, table, tag

_HEADS: Final = ("Strategy", "Cost per hour", "Short", "Pending", "Stops", "Unmet by priority")
_NUMBERS: Final = frozenset(_HEADS[1:5])


def comparison_section(answers: Sequence[Compared]) -> Iterator[Markup]:
    """Yield the answers side by side; nothing where nobody asked for them."""
    if not answers:
        return
    rows = [
        tag("tr", *(_cell(*pair) for pair in zip(_HEADS, comparison_row(item), strict=True)), class_="row")
        for item in answers
    ]
    failed = (f"{item.strategy}: what runs stands; {item.why_not}" for item in answers if item.why_not)
    told = (tag("p", text, class_="faint") for text in (*failed, *explanations(answers)))
    yield section("Beside other autoscalers", table(_HEADS, rows, numbers=_NUMBERS), *told)


def _cell(head: str, text: str) -> Markup:
    return tag("td", text, class_="number" if head in _NUMBERS else "name")
