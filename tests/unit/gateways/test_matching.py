"""What a rule's conditions become, where the text of one may change the meaning of what surrounds it."""

from __future__ import annotations

import pytest
import re2

from controller.gateways.matching import match_of

QUOTED = {
    "a quotation that stays open": r"\Qa.b",
    "one that is closed": r"\Qa.b\E",
    "one after another": r"\Qa\E.\Qb",
    "an escaped backslash before a letter": r"\\Qa",
    "one that ends in a backslash": "\\Qa\\",
}


@pytest.mark.parametrize("regex", QUOTED.values(), ids=QUOTED.keys())
def test_an_expression_is_found_anywhere_whatever_it_quotes(regex: str) -> None:
    """It is enclosed in others, which a quotation must not include."""
    match, notes = match_of({"uri": {"regex": regex}, "headers": {"x-a": {"regex": regex}}}, "spec.rules[0]")

    assert match is not None
    assert not notes
    for found in (match.path.value, dict(match.headers)["x-a"].value):
        for text in ("a.b", "axb", "xa.bx", "\\Qa", "xa\\x", ""):
            assert bool(re2.search(regex, text)) is bool(re2.fullmatch(found, text)), (found, text)
