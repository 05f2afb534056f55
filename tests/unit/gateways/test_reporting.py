"""The condition of a translated route, and its documentation."""

from __future__ import annotations

import pytest
from support.routes import route, translated
from support.samples import SAMPLES

from controller.expansion.parts import Note
from controller.expansion.standing import ChildKey
from controller.gateways.reporting import GatewayReason, TranslationResult, finding

NOTE = Note(path="spec.rateLimit", text="nothing is limited")
TAKEN = frozenset({ChildKey("HTTPRoute", "chat")})


@pytest.mark.parametrize(
    ("result", "reason", "text"),
    [
        (TranslationResult(children=translated(route()).objects), "Translated", "made: HTTPRoute chat"),
        (TranslationResult(), "Translated", "there is no rule to translate"),
        (TranslationResult(notes=[NOTE]), "Partially", "spec.rateLimit: nothing is limited"),
        (
            TranslationResult(notes=[NOTE], foreign=TAKEN, refused="HTTPRoute chat: no"),
            "ObjectExists",
            "HTTPRoute chat does not belong to this route and is not changed: delete it, or rename the"
            " route; HTTPRoute chat: no; spec.rateLimit: nothing is limited",
        ),
        (TranslationResult(refused="HTTPRoute chat: no"), "RequestRefused", "HTTPRoute chat: no"),
    ],
)
def test_the_most_severe_problem_gives_the_reason_and_the_message_contains_all(
    result: TranslationResult, reason: str, text: str
) -> None:
    """A condition has only one reason."""
    holds, why, said = finding(result)

    assert (str(why), said) == (reason, text)
    assert holds == (reason == "Translated")


def test_every_reason_is_documented() -> None:
    """The table is in docs/gateways.md."""
    page = (SAMPLES.parents[1] / "docs" / "gateways.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `Translated`"))

    explained = row.split("|")[2]
    assert [reason for reason in GatewayReason if f"`{reason}`" not in explained] == []
