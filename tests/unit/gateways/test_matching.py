"""Conversion of a rule's conditions, where the text of one can change the meaning of the whole expression."""

from __future__ import annotations

import time

import pytest
import re2

from controller.gateways.matching import match_of

QUOTED = {
    "a quotation without an end": r"\Qa.b",
    "a quotation with an end": r"\Qa.b\E",
    "one quotation after another": r"\Qa\E.\Qb",
    "an escaped backslash before a letter": r"\\Qa",
    "a quotation that ends in a backslash": "\\Qa\\",
}


@pytest.mark.parametrize("regex", QUOTED.values(), ids=QUOTED.keys())
def test_an_expression_matches_anywhere_even_if_it_has_quotations(regex: str) -> None:
    """It is enclosed in other expressions, which must not become part of a quotation."""
    match, notes = match_of({"uri": {"regex": regex}, "headers": {"x-a": {"regex": regex}}}, "spec.rules[0]")

    assert match is not None
    assert not notes
    for found in (match.path.value, dict(match.headers)["x-a"].value):
        for text in ("a.b", "axb", "xa.bx", "\\Qa", "xa\\x", ""):
            assert bool(re2.search(regex, text)) is bool(re2.fullmatch(found, text)), (found, text)


@pytest.mark.parametrize(
    ("text", "is_valid"), [("a" * 1023 + "é", False), ("a b\tc" * 200, True), ("a  b", False)]
)
def test_the_value_of_a_header_is_checked_in_linear_time(text: str, *, is_valid: bool) -> None:
    """All routes wait while a regular expression is evaluated."""
    began = time.process_time()
    match, _ = match_of({"headers": {"x-a": {"exact": text}}}, "spec.rules[0]")

    assert (match is not None) is is_valid
    assert time.process_time() - began < 1.0
