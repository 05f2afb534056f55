"""Formatting of numbers in messages."""

from __future__ import annotations

import pytest

from controller.planning.wording import amount_text, percent, rate_text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0"),
        (0.00004, "0.00004"),
        (0.1234, "0.123"),
        (1.0, "1"),
        (9.444, "9.44"),
        (9.996, "10"),
        (12.8, "12.8"),
        (41.24, "41.2"),
        (99.96, "100"),
        (1250.4, "1250"),
        (1e9, "1000000000"),
    ],
)
def test_a_rate_has_three_significant_digits_or_all_before_the_point(rate: float, text: str) -> None:
    """It never has an exponent."""
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("amount", "measure", "text"),
    [
        (1.0, "requests/s", "1 request/s"),
        (1.004, "requests/s", "1 request/s"),
        (1.01, "requests/s", "1.01 requests/s"),
        (0.0, "requests/s", "0 requests/s"),
        (1.0, "replicas", "1 replica"),
        (9.0, "replicas", "9 replicas"),
    ],
)
def test_an_amount_that_reads_as_one_has_a_singular(amount: float, measure: str, text: str) -> None:
    """The unit stays in the singular in any case."""
    assert amount_text(amount, measure) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1e-9, "0.01 %"),
        (0.0125, "1.25 %"),
        (0.661, "66.1 %"),
        (0.999, "99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_a_percentage_has_two_decimals_and_is_zero_only_for_nothing(share: float, text: str) -> None:
    """Decimals that are zero are dropped."""
    assert percent(share) == text
