"""Numbers in messages: their format, and the utilization of a model's replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.planning_builders import variant

from controller.planning.demand import provided_rate
from controller.planning.wording import amount_text, percent, rate_text, utilization_text


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


VARIANTS = (variant("other", serves=10_000_000), variant("own", serves=500_000), variant("unknown"))
"""Variants whose replicas serve 10, 0.5, and an unknown number of requests per second."""


def test_own_replicas_come_first_and_those_of_other_variants_are_named() -> None:
    """The replicas of the variant that the message is about have no name."""
    found = [utilization_text(VARIANTS, (2, 4, 7), 11, position=position) for position in range(3)]

    assert found == [
        "50 % of 2 x 10 + 4 x 0.5 own",
        "50 % of 4 x 0.5 + 2 x 10 other",
        "50 % of 2 x 10 other + 4 x 0.5 own",
    ]


def test_variants_without_replicas_or_known_capacity_are_not_listed() -> None:
    """They provide no known capacity."""
    assert utilization_text(VARIANTS, (0, 4, 7), 0.5, position=1) == "25 % of 4 x 0.5"
    assert provided_rate(VARIANTS, (0, 4, 7)) == 2_000_000


def test_replicas_count_that_serve_although_new_ones_are_not_counted_on() -> None:
    """They are listed, so the percentage is of their capacity, too."""
    slow = variant("slow", serves=1_000_000)
    assert slow.capacity is not None
    slow = replace(slow, capacity=replace(slow.capacity, is_usable=False))

    assert utilization_text((VARIANTS[0], slow), (1, 10), 10, position=0) == "50 % of 1 x 10 + 10 x 1 slow"
    assert utilization_text((slow,), (4,), 1, position=0) == "25 % of 4 x 1"


def test_there_is_no_utilization_without_known_capacity() -> None:
    """All replicas are of the variant with unknown capacity."""
    assert utilization_text(VARIANTS, (0, 0, 7), 0.5, position=1) == ""
