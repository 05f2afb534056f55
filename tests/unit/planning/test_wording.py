"""Formatting of numbers in messages."""

from __future__ import annotations

import pytest

from controller.planning.wording import rate_text


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
