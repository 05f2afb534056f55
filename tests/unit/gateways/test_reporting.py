"""The condition of a translated route, and its documentation."""

from __future__ import annotations

import pytest
from support.routes import route, translated
from support.samples import SAMPLES

from controller.gateways.reporting import GatewayReason, Outcome, finding
from controller.models.parts import Note
from controller.models.standing import ChildKey

NOTE = Note(path="spec.rateLimit", text="nothing is limited")
TAKEN = frozenset({ChildKey("HTTPRoute", "chat")})


@pytest.mark.parametrize(
    ("outcome", "reason", "text"),
    [
        (Outcome(children=translated(route()).objects), "Translated", "made: HTTPRoute chat"),
        (Outcome(), "Translated", "there is no rule to translate"),
        (Outcome(notes=[NOTE]), "Partially", "spec.rateLimit: nothing is limited"),
        (
            Outcome(notes=[NOTE], foreign=TAKEN, refused="HTTPRoute chat: no"),
            "ObjectExists",
            "HTTPRoute chat does not belong to this route and is not changed: delete it, or rename the"
            " route; HTTPRoute chat: no; spec.rateLimit: nothing is limited",
        ),
        (Outcome(refused="HTTPRoute chat: no"), "RequestRefused", "HTTPRoute chat: no"),
    ],
)
def test_the_most_severe_problem_gives_the_reason_and_the_message_contains_all(
    outcome: Outcome, reason: str, text: str
) -> None:
    """A condition has only one reason."""
    holds, why, said = finding(outcome)

    assert (str(why), said) == (reason, text)
    assert holds == (reason == "Translated")


def test_every_reason_is_documented() -> None:
    """The table is in docs/gateways.md."""
    page = (SAMPLES.parents[1] / "docs" / "gateways.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `Translated`"))

    explained = row.split("|")[2]
    assert [reason for reason in GatewayReason if f"`{reason}`" not in explained] == []
