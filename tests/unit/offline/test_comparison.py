"""Every strategy side by side: what a row leaves unsaid is said below it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from support.samples import SAMPLES

from controller.offline.comparison import Compared, explanations

Plan = Callable[..., tuple[int, str, list[str]]]

DEAR = Compared(
    strategy="optimal", cost=Decimal(70), short=0, pending=0, stopped=1, unmet=((1, 0.0), (5, 20.0))
)
CHEAP = replace(DEAR, strategy="wva-greedy", cost=Decimal(62), stopped=4)


def test_a_cheaper_row_that_stops_more_is_explained() -> None:
    """It would look as if the solver had missed something."""
    (sentence,) = explanations([DEAR, CHEAP])

    assert sentence.startswith("wva-greedy costs less and stops 4 replicas at once, optimal 1: ")


@pytest.mark.parametrize(
    "other",
    [
        replace(CHEAP, cost=Decimal(70)),
        replace(CHEAP, unmet=((1, 10.0), (5, 0.0))),
        replace(CHEAP, stopped=1),
        replace(CHEAP, why_not="no answer"),
    ],
    ids=["not cheaper", "more is unmet", "stops no more", "no answer of its own"],
)
def test_what_stops_nothing_for_its_price_is_not_explained_so(other: Compared) -> None:
    """The sentence would not be true."""
    assert [*explanations([DEAR, other])] == []


def test_the_samples_show_a_cheaper_row_everywhere(plan: Plan) -> None:
    """In the text, for programs and on the page."""
    asked = ("-f", str(SAMPLES / "plan"), "--compare", "--html", "p.html")
    _, text, _ = plan(*asked)
    _, document, _ = plan(*asked, "-o", "json")

    rows = json.loads(document)["compared"]
    first, *others = rows
    cheaper = [row for row in others if Decimal(row["cost"]) < Decimal(first["cost"])]
    page = Path("p.html").read_text(encoding="utf-8")
    assert cheaper
    for row in cheaper:
        sentence = f"{row['strategy']} costs less and stops {row['stopped']} replicas at once"
        assert sentence in text
        assert sentence in page
    assert "Beside other autoscalers" in page


def test_the_page_has_no_comparison_that_nobody_asked_for(plan: Plan) -> None:
    """It takes as many plans as there are strategies."""
    plan("-f", str(SAMPLES / "plan"), "--html", "p.html")

    assert "Beside other autoscalers" not in Path("p.html").read_text(encoding="utf-8")
