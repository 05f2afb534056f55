"""Utilization of a model's replicas, as messages about one of its variants state it."""

from __future__ import annotations

from dataclasses import replace

from support.planning_builders import variant

from controller.planning.demand import provided_rate
from controller.planning.wording import utilization_text

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
